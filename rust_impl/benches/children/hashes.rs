//! Seeded hashes of (parent, first page).

use std::hash::{BuildHasher, Hash, Hasher};

pub trait PageHash: Default {
    const NAME: &str;

    fn hash(&self, parent: u32, page: &[u32]) -> u64;
}

/// std's default.
#[derive(Default)]
pub struct Sip(std::hash::RandomState);

impl PageHash for Sip {
    const NAME: &str = "SipHash";

    fn hash(&self, parent: u32, page: &[u32]) -> u64 {
        self.0.hash_one((parent, page))
    }
}

/// By way of `Hash`, which writes the length too.
#[derive(Default)]
pub struct FoldQuality(foldhash::quality::RandomState);

impl PageHash for FoldQuality {
    const NAME: &str = "foldhash";

    fn hash(&self, parent: u32, page: &[u32]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u32(parent);
        page.hash(&mut hasher);
        hasher.finish()
    }
}

/// One token joins the parent in a word; a longer page is written as bytes, without its length, which all share.
fn written(mut hasher: impl Hasher, parent: u32, page: &[u32]) -> u64 {
    if let [token] = page {
        hasher.write_u64(u64::from(parent) << 32 | u64::from(*token));
    } else {
        hasher.write_u32(parent);
        // SAFETY: any u32 is four bytes.
        hasher.write(unsafe { page.align_to::<u8>().1 });
    }
    hasher.finish()
}

#[derive(Default)]
pub struct FoldWritten(foldhash::quality::RandomState);

impl PageHash for FoldWritten {
    const NAME: &str = "foldhash, page written as bytes";

    fn hash(&self, parent: u32, page: &[u32]) -> u64 {
        written(self.0.build_hasher(), parent, page)
    }
}

/// Without the last mixing, on which hash tables that take the low bits for their index do not depend.
#[derive(Default)]
pub struct FoldFast(foldhash::fast::RandomState);

impl PageHash for FoldFast {
    const NAME: &str = "foldhash (fast), page written as bytes";

    fn hash(&self, parent: u32, page: &[u32]) -> u64 {
        written(self.0.build_hasher(), parent, page)
    }
}
