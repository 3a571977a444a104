//! How far a key and a run agree, and numbers narrowed and widened: where long calls spend their time.
//!
//! Each loop exists for AVX-512, for AVX2 and for any processor; the best that this processor has is taken at run time.
//! All look at whole blocks first and find the position only in the block that differs.

use std::mem::MaybeUninit;

/// Tokens that both share from the front.
#[inline]
pub fn common(a: &[u32], b: &[u32]) -> usize {
    let count = a.len().min(b.len());
    let (a, b) = (&a[..count], &b[..count]);
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: this processor has AVX-512F.
            return unsafe { x86::common_avx512(a, b) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: this processor has AVX2.
            return unsafe { x86::common_avx2(a, b) };
        }
    }
    common_anywhere(a, b)
}

/// The same for a key of 64-bit integers. One outside of the tokens differs from every token.
#[inline]
pub fn common_wide(key: &[i64], stored: &[u32]) -> usize {
    let count = key.len().min(stored.len());
    let (key, stored) = (&key[..count], &stored[..count]);
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: this processor has AVX-512F.
            return unsafe { x86::common_wide_avx512(key, stored) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: this processor has AVX2.
            return unsafe { x86::common_wide_avx2(key, stored) };
        }
    }
    common_wide_anywhere(key, stored)
}

/// Whether all of them fit into 32 bits without a sign, as tokens must.
pub fn are_narrow(key: &[i64]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: this processor has AVX-512F.
            return unsafe { x86::union_avx512(key) } >> 32 == 0;
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: this processor has AVX2.
            return unsafe { x86::union_avx2(key) } >> 32 == 0;
        }
    }
    union(key) >> 32 == 0
}

/// Whether none of them has a sign.
pub fn are_not_negative(numbers: &[i32]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: this processor has AVX-512F.
            return unsafe { x86::union_32_avx512(numbers) } >= 0;
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: this processor has AVX2.
            return unsafe { x86::union_32_avx2(numbers) } >= 0;
        }
    }
    union_32(numbers) >= 0
}

#[inline(always)]
fn union_32(numbers: &[i32]) -> i32 {
    numbers.iter().fold(0, |bits, &number| bits | number)
}

/// Writes the lower 32 bits of each number to `to`, which is as long.
pub fn narrow(numbers: &[i64], to: &mut [MaybeUninit<u32>]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: this processor has AVX-512F.
            return unsafe { x86::narrow_avx512(numbers, to) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: this processor has AVX2.
            return unsafe { x86::narrow_avx2(numbers, to) };
        }
    }
    narrow_anywhere(numbers, to);
}

/// The opposite, of numbers without a sign.
pub fn widen(numbers: &[u32], to: &mut [MaybeUninit<i64>]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: this processor has AVX-512F.
            return unsafe { x86::widen_avx512(numbers, to) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: this processor has AVX2.
            return unsafe { x86::widen_avx2(numbers, to) };
        }
    }
    widen_anywhere(numbers, to);
}

#[inline(always)]
fn narrow_anywhere(numbers: &[i64], to: &mut [MaybeUninit<u32>]) {
    assert_eq!(numbers.len(), to.len());
    to.iter_mut().zip(numbers).for_each(|(to, &number)| _ = to.write(number as u32));
}

#[inline(always)]
fn widen_anywhere(numbers: &[u32], to: &mut [MaybeUninit<i64>]) {
    assert_eq!(numbers.len(), to.len());
    to.iter_mut().zip(numbers).for_each(|(to, &number)| _ = to.write(i64::from(number)));
}

/// The bits that any of them has.
#[inline(always)]
fn union(numbers: &[i64]) -> u64 {
    numbers.iter().fold(0, |bits, &number| bits | number as u64)
}

const BLOCK: usize = 64;

#[inline(always)]
pub fn common_anywhere(a: &[u32], b: &[u32]) -> usize {
    let same = |(x, y): &(&[u32], &[u32])| x.iter().zip(*y).fold(0, |bits, (x, y)| bits | (x ^ y)) == 0;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).take_while(same).count();
    let from = blocks * BLOCK;
    from + a[from..].iter().zip(&b[from..]).take_while(|(x, y)| x == y).count()
}

#[inline(always)]
pub fn common_wide_anywhere(key: &[i64], stored: &[u32]) -> usize {
    let differ = |x: &i64, y: &u32| *x as u64 ^ u64::from(*y);
    let same = |(x, y): &(&[i64], &[u32])| x.iter().zip(*y).fold(0, |bits, (x, y)| bits | differ(x, y)) == 0;
    let blocks = key.chunks_exact(BLOCK).zip(stored.chunks_exact(BLOCK)).take_while(same).count();
    let from = blocks * BLOCK;
    from + key[from..].iter().zip(&stored[from..]).take_while(|(x, y)| differ(x, y) == 0).count()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::mem::MaybeUninit;

    /// `a` and `b` are equally long.
    #[target_feature(enable = "avx512f")]
    pub fn common_avx512(a: &[u32], b: &[u32]) -> usize {
        let (count, a, b) = (a.len(), a.as_ptr(), b.as_ptr());
        let mut at = 0;
        // SAFETY: every load lies below `count`, the masked one by its mask.
        unsafe {
            let differ = |at: usize| {
                _mm512_xor_si512(_mm512_loadu_si512(a.add(at).cast()), _mm512_loadu_si512(b.add(at).cast()))
            };
            while at + 64 <= count {
                let low = _mm512_or_si512(differ(at), differ(at + 16));
                let high = _mm512_or_si512(differ(at + 32), differ(at + 48));
                let any = _mm512_or_si512(low, high);
                if _mm512_test_epi32_mask(any, any) != 0 {
                    break;
                }
                at += 64;
            }
            while at < count {
                let lanes = u16::MAX >> (16 - (count - at).min(16));
                let (x, y) = (
                    _mm512_maskz_loadu_epi32(lanes, a.add(at).cast()),
                    _mm512_maskz_loadu_epi32(lanes, b.add(at).cast()),
                );
                let differing = _mm512_cmpneq_epi32_mask(x, y);
                if differing != 0 {
                    return at + differing.trailing_zeros() as usize;
                }
                at += 16;
            }
        }
        count
    }

    /// `key` and `stored` are equally long.
    #[target_feature(enable = "avx512f,avx512vl")]
    pub fn common_wide_avx512(key: &[i64], stored: &[u32]) -> usize {
        let (count, key, stored) = (key.len(), key.as_ptr(), stored.as_ptr());
        let mut at = 0;
        // SAFETY: every load lies below `count`, the masked ones by their mask.
        unsafe {
            let differ = |at: usize| {
                let stored = _mm512_cvtepu32_epi64(_mm256_loadu_si256(stored.add(at).cast()));
                _mm512_xor_si512(stored, _mm512_loadu_si512(key.add(at).cast()))
            };
            while at + 32 <= count {
                let low = _mm512_or_si512(differ(at), differ(at + 8));
                let high = _mm512_or_si512(differ(at + 16), differ(at + 24));
                let any = _mm512_or_si512(low, high);
                if _mm512_test_epi64_mask(any, any) != 0 {
                    break;
                }
                at += 32;
            }
            while at < count {
                let lanes = u8::MAX >> (8 - (count - at).min(8));
                let wide = _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32(lanes, stored.add(at).cast()));
                let differing = _mm512_cmpneq_epi64_mask(wide, _mm512_maskz_loadu_epi64(lanes, key.add(at)));
                if differing != 0 {
                    return at + differing.trailing_zeros() as usize;
                }
                at += 8;
            }
        }
        count
    }

    // The compiler makes vectors of these by itself.

    #[target_feature(enable = "avx2")]
    pub fn common_avx2(a: &[u32], b: &[u32]) -> usize {
        super::common_anywhere(a, b)
    }

    #[target_feature(enable = "avx2")]
    pub fn common_wide_avx2(key: &[i64], stored: &[u32]) -> usize {
        super::common_wide_anywhere(key, stored)
    }

    #[target_feature(enable = "avx512f")]
    pub fn narrow_avx512(numbers: &[i64], to: &mut [MaybeUninit<u32>]) {
        super::narrow_anywhere(numbers, to);
    }

    #[target_feature(enable = "avx2")]
    pub fn narrow_avx2(numbers: &[i64], to: &mut [MaybeUninit<u32>]) {
        super::narrow_anywhere(numbers, to);
    }

    #[target_feature(enable = "avx512f")]
    pub fn widen_avx512(numbers: &[u32], to: &mut [MaybeUninit<i64>]) {
        super::widen_anywhere(numbers, to);
    }

    #[target_feature(enable = "avx2")]
    pub fn widen_avx2(numbers: &[u32], to: &mut [MaybeUninit<i64>]) {
        super::widen_anywhere(numbers, to);
    }

    #[target_feature(enable = "avx512f")]
    pub fn union_32_avx512(numbers: &[i32]) -> i32 {
        super::union_32(numbers)
    }

    #[target_feature(enable = "avx2")]
    pub fn union_32_avx2(numbers: &[i32]) -> i32 {
        super::union_32(numbers)
    }

    #[target_feature(enable = "avx512f")]
    pub fn union_avx512(numbers: &[i64]) -> u64 {
        super::union(numbers)
    }

    #[target_feature(enable = "avx2")]
    pub fn union_avx2(numbers: &[i64]) -> u64 {
        super::union(numbers)
    }
}
