//! Forms of the slots of one run.

use super::common::Random;

pub const UNITS: usize = 8 << 10;

/// Slots as an allocator with pages of `page` gives them after a while: consecutive within a page only.
pub fn paged(page: usize) -> Vec<i64> {
    let pages = Random(16).shuffled(UNITS / page);
    pages.into_iter().flat_map(|number| (0..page).map(move |at| (number * page + at) as i64)).collect()
}

#[inline(always)]
pub fn widen(stored: &[u32], out: &mut [i64]) {
    out.iter_mut().zip(stored).for_each(|(out, &slot)| *out = i64::from(slot));
}

/// Whether all fit.
#[inline(always)]
pub fn narrow(slots: &[i64], stored: &mut [u32]) -> bool {
    let mut high = 0;
    for (stored, &slot) in stored.iter_mut().zip(slots) {
        *stored = slot as u32;
        high |= slot;
    }
    high as u64 >> 32 == 0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub fn widen_avx2(stored: &[u32], out: &mut [i64]) {
    widen(stored, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub fn narrow_avx2(slots: &[i64], stored: &mut [u32]) -> bool {
    narrow(slots, stored)
}

/// (first slot, length) of what is consecutive. Blocks that are so as a whole are told without a branch a slot.
pub fn runs(slots: &[i64], runs: &mut Vec<(i64, u32)>) {
    runs.clear();
    let mut add = |first: i64, len: u32| match runs.last_mut() {
        Some((start, before)) if *start + i64::from(*before) == first => *before += len,
        _ => runs.push((first, len)),
    };
    let (blocks, rest) = slots.as_chunks::<16>();
    for block in blocks {
        if (0..16).fold(0, |differ, at| differ | (block[at] - block[0] - at as i64)) == 0 {
            add(block[0], 16);
        } else {
            block.iter().for_each(|&slot| add(slot, 1));
        }
    }
    rest.iter().for_each(|&slot| add(slot, 1));
}

pub fn expand(runs: &[(i64, u32)], mut out: &mut [i64]) {
    for &(first, len) in runs {
        let (here, rest) = out.split_at_mut(len as usize);
        here.iter_mut().zip(first..).for_each(|(out, slot)| *out = slot);
        out = rest;
    }
}
