//! Kernels for AVX2 and AVX-512. Each returns the position, and takes key and run of equal length.
//!
//! The safe ones are the portable loops, compiled for the wider registers.

use std::arch::x86_64::*;

use super::kernels::{Token, blocks, narrow};

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

/// u32 against u32, 32 a step.
#[target_feature(enable = "avx2")]
pub fn narrow_key_avx2(key: &[u32], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    let mut at = 0;
    // SAFETY: every load of 8 elements at `at` has `at + 8 <= len`.
    unsafe {
        let xor =
            |at: usize| _mm256_xor_si256(_mm256_loadu_si256(k.add(at).cast()), _mm256_loadu_si256(s.add(at).cast()));
        while at + 32 <= len {
            let low = _mm256_or_si256(xor(at), xor(at + 8));
            let any = _mm256_or_si256(low, _mm256_or_si256(xor(at + 16), xor(at + 24)));
            if _mm256_testz_si256(any, any) == 0 {
                break;
            }
            at += 32;
        }
        while at + 8 <= len {
            let equal = _mm256_cmpeq_epi32(xor(at), _mm256_setzero_si256());
            let mask = _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u32;
            if mask != 0xFF {
                return at + mask.trailing_ones() as usize;
            }
            at += 8;
        }
    }
    at + super::kernels::element_loop(&key[at..len], &stored[at..len])
}

/// u32 against u32, 64 a step; what is left over by masked loads.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub fn narrow_key_avx512(key: &[u32], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    let mut at = 0;
    // SAFETY: loads of 16 elements at `at` have `at + 16 <= len`, or a mask of the elements below `len`.
    unsafe {
        let xor =
            |at: usize| _mm512_xor_si512(_mm512_loadu_si512(k.add(at).cast()), _mm512_loadu_si512(s.add(at).cast()));
        while at + 64 <= len {
            let low = _mm512_or_si512(xor(at), xor(at + 16));
            let any = _mm512_or_si512(low, _mm512_or_si512(xor(at + 32), xor(at + 48)));
            if _mm512_test_epi32_mask(any, any) != 0 {
                break;
            }
            at += 64;
        }
        while at + 16 <= len {
            let differ = _mm512_test_epi32_mask(xor(at), xor(at));
            if differ != 0 {
                return at + differ.trailing_zeros() as usize;
            }
            at += 16;
        }
        let mask = (1_u16 << (len - at)) - 1;
        let (x, y) = (k.add(at).cast(), s.add(at).cast());
        let (x, y) = (_mm512_maskz_loadu_epi32(mask, x), _mm512_maskz_loadu_epi32(mask, y));
        at + (_mm512_cmpneq_epi32_mask(x, y).trailing_zeros() as usize).min(len - at)
    }
}

/// int64 against u32, 16 a step: what is stored is widened in the register.
#[target_feature(enable = "avx2")]
pub fn wide_key_avx2(key: &[i64], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    let mut at = 0;
    // SAFETY: every load of 4 elements at `at` has `at + 4 <= len`.
    unsafe {
        let xor = |at: usize| {
            let wide = _mm256_cvtepu32_epi64(_mm_loadu_si128(s.add(at).cast()));
            _mm256_xor_si256(_mm256_loadu_si256(k.add(at).cast()), wide)
        };
        while at + 16 <= len {
            let low = _mm256_or_si256(xor(at), xor(at + 4));
            let any = _mm256_or_si256(low, _mm256_or_si256(xor(at + 8), xor(at + 12)));
            if _mm256_testz_si256(any, any) == 0 {
                break;
            }
            at += 16;
        }
        while at + 4 <= len {
            let equal = _mm256_cmpeq_epi64(xor(at), _mm256_setzero_si256());
            let mask = _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u32;
            if mask != 0xF {
                return at + mask.trailing_ones() as usize;
            }
            at += 4;
        }
    }
    at + super::kernels::element_loop(&key[at..len], &stored[at..len])
}

/// int64 against u32, 32 a step: what is stored is widened in the register.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub fn wide_key_avx512(key: &[i64], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    let mut at = 0;
    // SAFETY: every load of 8 elements at `at` has `at + 8 <= len`.
    unsafe {
        let xor = |at: usize| {
            let wide = _mm512_cvtepu32_epi64(_mm256_loadu_si256(s.add(at).cast()));
            _mm512_xor_si512(_mm512_loadu_si512(k.add(at).cast()), wide)
        };
        while at + 32 <= len {
            let low = _mm512_or_si512(xor(at), xor(at + 8));
            let any = _mm512_or_si512(low, _mm512_or_si512(xor(at + 16), xor(at + 24)));
            if _mm512_test_epi64_mask(any, any) != 0 {
                break;
            }
            at += 32;
        }
    }
    at + wide_tail_avx512(&key[at..len], &stored[at..len])
}

/// int64 against u32, 32 a step: the low halves of the key are gathered in the register, the high ones must be 0.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub fn wide_key_permuted_avx512(key: &[i64], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    let mut at = 0;
    // SAFETY: every load of 16 elements at `at` has `at + 16 <= len`.
    unsafe {
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let high = _mm512_set1_epi64(!0xFFFF_FFFF);
        let differ = |at: usize| {
            let (x, y) = (_mm512_loadu_si512(k.add(at).cast()), _mm512_loadu_si512(k.add(at + 8).cast()));
            let low = _mm512_permutex2var_epi32(x, even, y);
            let xor = _mm512_xor_si512(low, _mm512_loadu_si512(s.add(at).cast()));
            _mm512_or_si512(xor, _mm512_and_si512(high, _mm512_or_si512(x, y)))
        };
        while at + 32 <= len {
            let any = _mm512_or_si512(differ(at), differ(at + 16));
            if _mm512_test_epi64_mask(any, any) != 0 {
                break;
            }
            at += 32;
        }
    }
    at + wide_tail_avx512(&key[at..len], &stored[at..len])
}

/// The position among the last elements, 8 a step, the rest by masked loads.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn wide_tail_avx512(key: &[i64], stored: &[u32]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    let mut at = 0;
    // SAFETY: loads of 8 elements at `at` have `at + 8 <= len`, or a mask of the elements below `len`.
    unsafe {
        while at + 8 <= len {
            let wide = _mm512_cvtepu32_epi64(_mm256_loadu_si256(s.add(at).cast()));
            let differ = _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(k.add(at).cast()), wide);
            if differ != 0 {
                return at + differ.trailing_zeros() as usize;
            }
            at += 8;
        }
        let mask = (1_u8 << (len - at)) - 1;
        let wide = _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32(mask, s.add(at).cast()));
        let differ = _mm512_cmpneq_epi64_mask(_mm512_maskz_loadu_epi64(mask, k.add(at)), wide);
        at + (differ.trailing_zeros() as usize).min(len - at)
    }
}

/// int64 against int64, 32 a step.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub fn wide_both_avx512(key: &[i64], stored: &[i64]) -> usize {
    let (len, k, s) = (key.len().min(stored.len()), key.as_ptr(), stored.as_ptr());
    let mut at = 0;
    // SAFETY: loads of 8 elements at `at` have `at + 8 <= len`, or a mask of the elements below `len`.
    unsafe {
        let xor =
            |at: usize| _mm512_xor_si512(_mm512_loadu_si512(k.add(at).cast()), _mm512_loadu_si512(s.add(at).cast()));
        while at + 32 <= len {
            let low = _mm512_or_si512(xor(at), xor(at + 8));
            let any = _mm512_or_si512(low, _mm512_or_si512(xor(at + 16), xor(at + 24)));
            if _mm512_test_epi64_mask(any, any) != 0 {
                break;
            }
            at += 32;
        }
        while at + 8 <= len {
            let differ = _mm512_test_epi64_mask(xor(at), xor(at));
            if differ != 0 {
                return at + differ.trailing_zeros() as usize;
            }
            at += 8;
        }
        let mask = (1_u8 << (len - at)) - 1;
        let (x, y) = (_mm512_maskz_loadu_epi64(mask, k.add(at)), _mm512_maskz_loadu_epi64(mask, s.add(at)));
        at + (_mm512_cmpneq_epi64_mask(x, y).trailing_zeros() as usize).min(len - at)
    }
}
