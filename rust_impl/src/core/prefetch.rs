//! Asking for memory before it is needed.

/// Loads the cache line of that value, soon.
#[inline(always)]
pub fn line<T>(value: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which may name any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(value.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
