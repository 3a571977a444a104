//! Kernels for AVX2 and AVX-512. Each returns the position, and takes key and run of equal length.
//!
//! The safe ones are the portable loops, compiled for the wider registers.

use std::arch::x86_64::*;

use super::kernels::{Token, blocks, element_loop, narrow};

#[target_feature(enable = "avx2")]
pub fn blocks_avx2<K: Token, S: Token>(key: &[K], stored: &[S]) -> usize {
    blocks(key, stored)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
pub fn blocks_avx512<K: Token, S: Token>(key: &[K], stored: &[S]) -> usize {
    blocks(key, stored)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
pub fn narrow_avx512(key: &[i64], scratch: &mut [u32]) -> bool {
    narrow(key, scratch)
}

/// Four vectors a step while they are equal, then one a step, whose first difference is returned; else how far whole
/// vectors go.
///
/// `$xor`: the XOR of the `$lanes` elements at a place, which end at `$len` or before. `$or`: of two vectors. `$any`:
/// whether a vector has a bit set. `$differing`: a bit for each of its elements that has one.
macro_rules! whole_vectors {
    ($len:expr, $lanes:literal, $xor:expr, $or:path, $any:expr, $differing:expr) => {{
        let mut at = 0;
        while at + 4 * $lanes <= $len {
            let low = $or($xor(at), $xor(at + $lanes));
            if $any($or(low, $or($xor(at + 2 * $lanes), $xor(at + 3 * $lanes)))) {
                break;
            }
            at += 4 * $lanes;
        }
        while at + $lanes <= $len {
            let differing = $differing($xor(at));
            if differing != 0 {
                return at + differing.trailing_zeros() as usize;
            }
            at += $lanes;
        }
        at
    }};
}

/// u32 against u32, 32 a step.
#[target_feature(enable = "avx2")]
pub fn narrow_key_avx2(key: &[u32], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    // SAFETY: loads of 8 elements at `at` have `at + 8 <= len`.
    let xor = |at: usize| unsafe {
        _mm256_xor_si256(_mm256_loadu_si256(k.add(at).cast()), _mm256_loadu_si256(s.add(at).cast()))
    };
    let any = |bits: __m256i| _mm256_testz_si256(bits, bits) == 0;
    let differing = |bits: __m256i| {
        let equal = _mm256_cmpeq_epi32(bits, _mm256_setzero_si256());
        _mm256_movemask_ps(_mm256_castsi256_ps(equal)) ^ 0xFF
    };
    let at = whole_vectors!(len, 8, xor, _mm256_or_si256, any, differing);
    at + element_loop(&key[at..len], &stored[at..len])
}

/// u32 against u32, 64 a step; what is left over by masked loads.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub fn narrow_key_avx512(key: &[u32], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    // SAFETY: loads of 16 elements at `at` have `at + 16 <= len`.
    let xor = |at: usize| unsafe {
        _mm512_xor_si512(_mm512_loadu_si512(k.add(at).cast()), _mm512_loadu_si512(s.add(at).cast()))
    };
    let differing = |bits: __m512i| _mm512_test_epi32_mask(bits, bits);
    let at = whole_vectors!(len, 16, xor, _mm512_or_si512, |bits: __m512i| differing(bits) != 0, differing);
    let mask = (1_u16 << (len - at)) - 1;
    // SAFETY: the mask has the elements below `len` alone.
    let (x, y) =
        unsafe { (_mm512_maskz_loadu_epi32(mask, k.add(at).cast()), _mm512_maskz_loadu_epi32(mask, s.add(at).cast())) };
    at + (_mm512_cmpneq_epi32_mask(x, y).trailing_zeros() as usize).min(len - at)
}

/// int64 against u32, 16 a step: what is stored is widened in the register.
#[target_feature(enable = "avx2")]
pub fn wide_key_avx2(key: &[i64], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    // SAFETY: loads of 4 elements at `at` have `at + 4 <= len`.
    let xor = |at: usize| unsafe {
        let wide = _mm256_cvtepu32_epi64(_mm_loadu_si128(s.add(at).cast()));
        _mm256_xor_si256(_mm256_loadu_si256(k.add(at).cast()), wide)
    };
    let any = |bits: __m256i| _mm256_testz_si256(bits, bits) == 0;
    let differing = |bits: __m256i| {
        let equal = _mm256_cmpeq_epi64(bits, _mm256_setzero_si256());
        _mm256_movemask_pd(_mm256_castsi256_pd(equal)) ^ 0xF
    };
    let at = whole_vectors!(len, 4, xor, _mm256_or_si256, any, differing);
    at + element_loop(&key[at..len], &stored[at..len])
}

/// int64 against u32, 32 a step: what is stored is widened in the register.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub fn wide_key_avx512(key: &[i64], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    // SAFETY: loads of 8 elements at `at` have `at + 8 <= len`.
    let xor = |at: usize| unsafe {
        let wide = _mm512_cvtepu32_epi64(_mm256_loadu_si256(s.add(at).cast()));
        _mm512_xor_si512(_mm512_loadu_si512(k.add(at).cast()), wide)
    };
    let differing = |bits: __m512i| _mm512_test_epi64_mask(bits, bits);
    let at = whole_vectors!(len, 8, xor, _mm512_or_si512, |bits: __m512i| differing(bits) != 0, differing);
    let mask = (1_u8 << (len - at)) - 1;
    // SAFETY: the mask has the elements below `len` alone.
    let (x, y) =
        unsafe { (_mm512_maskz_loadu_epi64(mask, k.add(at)), _mm256_maskz_loadu_epi32(mask, s.add(at).cast())) };
    at + (_mm512_cmpneq_epi64_mask(x, _mm512_cvtepu32_epi64(y)).trailing_zeros() as usize).min(len - at)
}

/// int64 against u32, 32 a step: the low halves of the key are gathered in the register, the high ones must be 0.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub fn wide_key_permuted_avx512(key: &[i64], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    let high = _mm512_set1_epi64(!0xFFFF_FFFF);
    // SAFETY: loads of 16 elements at `at` have `at + 16 <= len`.
    let differ = |at: usize| unsafe {
        let (x, y) = (_mm512_loadu_si512(k.add(at).cast()), _mm512_loadu_si512(k.add(at + 8).cast()));
        let low = _mm512_permutex2var_epi32(x, even, y);
        let xor = _mm512_xor_si512(low, _mm512_loadu_si512(s.add(at).cast()));
        _mm512_or_si512(xor, _mm512_and_si512(high, _mm512_or_si512(x, y)))
    };
    let mut at = 0;
    while at + 32 <= len {
        let any = _mm512_or_si512(differ(at), differ(at + 16));
        if _mm512_test_epi64_mask(any, any) != 0 {
            break;
        }
        at += 32;
    }
    at + wide_key_avx512(&key[at..len], &stored[at..len])
}

/// int64 against int64, 32 a step.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub fn wide_both_avx512(key: &[i64], stored: &[i64]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    // SAFETY: loads of 8 elements at `at` have `at + 8 <= len`.
    let xor = |at: usize| unsafe {
        _mm512_xor_si512(_mm512_loadu_si512(k.add(at).cast()), _mm512_loadu_si512(s.add(at).cast()))
    };
    let differing = |bits: __m512i| _mm512_test_epi64_mask(bits, bits);
    let at = whole_vectors!(len, 8, xor, _mm512_or_si512, |bits: __m512i| differing(bits) != 0, differing);
    let mask = (1_u8 << (len - at)) - 1;
    // SAFETY: the mask has the elements below `len` alone.
    let (x, y) = unsafe { (_mm512_maskz_loadu_epi64(mask, k.add(at)), _mm512_maskz_loadu_epi64(mask, s.add(at))) };
    at + (_mm512_cmpneq_epi64_mask(x, y).trailing_zeros() as usize).min(len - at)
}
