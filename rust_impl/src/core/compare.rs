//! How far a key and a run agree, and numbers looked through, narrowed and widened: where long calls spend their time.
//!
//! Each loop exists for AVX-512, for AVX2 and for any processor; the best that this processor has is taken at run time.
//! All look at whole blocks first and find the position only in the block that differs.
//!
//! Obligations of `unsafe`:
//!
//! O1. A function for AVX-512F or AVX2 is called only after this processor was found to have it.
//! O2. A load reads no more than the reference that it is given leads to; any alignment will do.

use std::mem::MaybeUninit;

/// Calls the loop for the best instructions that this processor has.
macro_rules! best {
    ($avx512:ident, $avx2:ident, $anywhere:ident, $($given:expr),+) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: O1.
                return unsafe { x86::$avx512($($given),+) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: O1.
                return unsafe { x86::$avx2($($given),+) };
            }
        }
        $anywhere($($given),+)
    }};
}

/// Which of the loops this processor runs.
pub fn loops_name() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return "avx512";
        }
        if is_x86_feature_detected!("avx2") {
            return "avx2";
        }
    }
    "any"
}

/// Tokens that both share from the front.
#[inline(always)]
pub fn common(a: &[u32], b: &[u32]) -> usize {
    let count = a.len().min(b.len());
    let (a, b) = (&a[..count], &b[..count]);
    best!(common_avx512, common_avx2, common_anywhere, a, b)
}

/// The same for a key of 64-bit integers. One outside of the tokens differs from every token.
#[inline(always)]
pub fn common_wide(key: &[i64], stored: &[u32]) -> usize {
    let count = key.len().min(stored.len());
    let (key, stored) = (&key[..count], &stored[..count]);
    best!(common_wide_avx512, common_wide_avx2, common_wide_anywhere, key, stored)
}

/// Whether all of them fit into 32 bits without a sign, as tokens must.
pub fn are_narrow(key: &[i64]) -> bool {
    union(key) >> 32 == 0
}

/// Whether none of them has a sign.
pub fn are_not_negative(numbers: &[i32]) -> bool {
    union_32(numbers) >= 0
}

/// Whether each of them is one more than the one before.
pub fn are_consecutive(numbers: &[i64]) -> bool {
    best!(are_consecutive_avx512, are_consecutive_avx2, are_consecutive_anywhere, numbers)
}

/// The bits that any of them has.
fn union(numbers: &[i64]) -> u64 {
    best!(union_avx512, union_avx2, union_anywhere, numbers)
}

fn union_32(numbers: &[i32]) -> i32 {
    best!(union_32_avx512, union_32_avx2, union_32_anywhere, numbers)
}

/// Writes the lower 32 bits of each number to `to`, which is as long.
pub fn narrow(numbers: &[i64], to: &mut [MaybeUninit<u32>]) {
    best!(narrow_avx512, narrow_avx2, narrow_anywhere, numbers, to);
}

/// The opposite, of numbers without a sign.
pub fn widen(numbers: &[u32], to: &mut [MaybeUninit<i64>]) {
    best!(widen_avx512, widen_avx2, widen_anywhere, numbers, to);
}

/// Writes them to `to`, which is as long.
pub fn copy<T: Copy>(numbers: &[T], to: &mut [MaybeUninit<T>]) {
    assert_eq!(numbers.len(), to.len());
    to.iter_mut().zip(numbers).for_each(|(to, &number)| _ = to.write(number));
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

#[inline(always)]
fn union_anywhere(numbers: &[i64]) -> u64 {
    numbers.iter().fold(0, |bits, &number| bits | number as u64)
}

#[inline(always)]
fn union_32_anywhere(numbers: &[i32]) -> i32 {
    numbers.iter().fold(0, |bits, &number| bits | number)
}

const BLOCK: usize = 64;

#[inline(always)]
fn are_consecutive_anywhere(numbers: &[i64]) -> bool {
    let Some(&first) = numbers.first() else { return true };
    numbers.chunks(BLOCK).enumerate().all(|(block, numbers)| {
        let first = first.wrapping_add((block * BLOCK) as i64);
        numbers.iter().zip(0..).fold(0, |bits, (&number, at)| bits | (number ^ first.wrapping_add(at))) == 0
    })
}

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
        let differ = |a: &[u32; 16], b: &[u32; 16]| _mm512_xor_si512(sixteen(a), sixteen(b));
        let mut at = 0;
        for (a, b) in a.as_chunks::<64>().0.iter().zip(b.as_chunks::<64>().0) {
            let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (quarters(a), quarters(b));
            let low = _mm512_or_si512(differ(a0, b0), differ(a1, b1));
            let high = _mm512_or_si512(differ(a2, b2), differ(a3, b3));
            let any = _mm512_or_si512(low, high);
            if _mm512_test_epi32_mask(any, any) != 0 {
                break;
            }
            at += 64;
        }
        if at == a.len() {
            return at;
        }
        let ((a_parts, a_rest), (b_parts, b_rest)) = (a[at..].as_chunks::<16>(), b[at..].as_chunks::<16>());
        for (a, b) in a_parts.iter().zip(b_parts) {
            let differing = _mm512_cmpneq_epi32_mask(sixteen(a), sixteen(b));
            if differing != 0 {
                return at + differing.trailing_zeros() as usize;
            }
            at += 16;
        }
        let differing = _mm512_cmpneq_epi32_mask(up_to_sixteen(a_rest), up_to_sixteen(b_rest));
        a.len().min(at + differing.trailing_zeros() as usize)
    }

    /// `key` and `stored` are equally long.
    #[target_feature(enable = "avx512f")]
    pub fn common_wide_avx512(key: &[i64], stored: &[u32]) -> usize {
        let differ = |key: &[i64; 8], stored: &[u32; 8]| _mm512_xor_si512(eight(key), eight_widened(stored));
        let mut at = 0;
        for (key, stored) in key.as_chunks::<32>().0.iter().zip(stored.as_chunks::<32>().0) {
            let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (quarters(key), quarters(stored));
            let low = _mm512_or_si512(differ(a0, b0), differ(a1, b1));
            let high = _mm512_or_si512(differ(a2, b2), differ(a3, b3));
            let any = _mm512_or_si512(low, high);
            if _mm512_test_epi64_mask(any, any) != 0 {
                break;
            }
            at += 32;
        }
        if at == key.len() {
            return at;
        }
        let ((key_parts, key_rest), (parts, rest)) = (key[at..].as_chunks::<8>(), stored[at..].as_chunks::<8>());
        for (key, stored) in key_parts.iter().zip(parts) {
            let differing = _mm512_cmpneq_epi64_mask(eight(key), eight_widened(stored));
            if differing != 0 {
                return at + differing.trailing_zeros() as usize;
            }
            at += 8;
        }
        let rest = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(up_to_sixteen(rest)));
        let differing = _mm512_cmpneq_epi64_mask(up_to_eight(key_rest), rest);
        key.len().min(at + differing.trailing_zeros() as usize)
    }

    #[inline]
    fn quarters<T, const WHOLE: usize, const QUARTER: usize>(block: &[T; WHOLE]) -> [&[T; QUARTER]; 4] {
        const { assert!(WHOLE == 4 * QUARTER) };
        let quarters = block.as_chunks().0;
        [&quarters[0], &quarters[1], &quarters[2], &quarters[3]]
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn sixteen(numbers: &[u32; 16]) -> __m512i {
        // SAFETY: O2, 64 bytes of 64.
        unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn eight(numbers: &[i64; 8]) -> __m512i {
        // SAFETY: O2, 64 bytes of 64.
        unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn eight_widened(numbers: &[u32; 8]) -> __m512i {
        // SAFETY: O2, 32 bytes of 32.
        let narrow = unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) };
        _mm512_cvtepu32_epi64(narrow)
    }

    /// The first sixteen, or all and zeros.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn up_to_sixteen(numbers: &[u32]) -> __m512i {
        let lanes = ((1u32 << numbers.len().min(16)) - 1) as u16;
        // SAFETY: O2, the mask leaves out what lies behind the last number.
        unsafe { _mm512_maskz_loadu_epi32(lanes, numbers.as_ptr().cast()) }
    }

    /// The first eight, or all and zeros.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn up_to_eight(numbers: &[i64]) -> __m512i {
        let lanes = ((1u32 << numbers.len().min(8)) - 1) as u8;
        // SAFETY: O2, the mask leaves out what lies behind the last number.
        unsafe { _mm512_maskz_loadu_epi64(lanes, numbers.as_ptr()) }
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
    pub fn are_consecutive_avx512(numbers: &[i64]) -> bool {
        super::are_consecutive_anywhere(numbers)
    }

    #[target_feature(enable = "avx2")]
    pub fn are_consecutive_avx2(numbers: &[i64]) -> bool {
        super::are_consecutive_anywhere(numbers)
    }

    #[target_feature(enable = "avx512f")]
    pub fn union_32_avx512(numbers: &[i32]) -> i32 {
        super::union_32_anywhere(numbers)
    }

    #[target_feature(enable = "avx2")]
    pub fn union_32_avx2(numbers: &[i32]) -> i32 {
        super::union_32_anywhere(numbers)
    }

    #[target_feature(enable = "avx512f")]
    pub fn union_avx512(numbers: &[i64]) -> u64 {
        super::union_anywhere(numbers)
    }

    #[target_feature(enable = "avx2")]
    pub fn union_avx2(numbers: &[i64]) -> u64 {
        super::union_anywhere(numbers)
    }
}
