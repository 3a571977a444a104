//! What a cache is made with.

/// Which pages go first; the ranks stand in `Tree::rank`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Lru,
    Lfu,
    Fifo,
    Mru,
    Filo,
    Priority,
    Slru,
}

impl Policy {
    pub const ALL: [(&'static str, Policy); 7] = [
        ("lru", Policy::Lru),
        ("lfu", Policy::Lfu),
        ("fifo", Policy::Fifo),
        ("mru", Policy::Mru),
        ("filo", Policy::Filo),
        ("priority", Policy::Priority),
        ("slru", Policy::Slru),
    ];

    pub fn from_name(name: &str) -> Option<Policy> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, policy)| policy)
    }

    /// Whether the rank depends on the last access: if not, a match needs no mark at all.
    pub const fn ranks_by_last(self) -> bool {
        !matches!(self, Policy::Fifo | Policy::Filo)
    }

    pub const fn ranks_by_hits(self) -> bool {
        matches!(self, Policy::Lfu | Policy::Slru)
    }

    pub const fn ranks_by_priority(self) -> bool {
        matches!(self, Policy::Priority)
    }

    /// Whether marks need a `Weight`.
    pub const fn has_weights(self) -> bool {
        self.ranks_by_hits() || self.ranks_by_priority()
    }
}

/// Sizes that change the form of the tree but no result. Tests make them small.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A run with more marks is split.
    pub marks: usize,
    /// A merge never makes a run with more marks than this.
    pub merged_marks: usize,
    /// Bytes of a generation of spans.
    pub generation: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { marks: 160, merged_marks: 80, generation: 64 << 10 }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Units a page. A size that no key can reach is as good as any larger one.
    pub page_size: usize,
    pub policy: Policy,
    pub bigram: bool,
    pub slru_threshold: i64,
    pub events: bool,
    pub limits: Limits,
}

impl Config {
    /// Tokens that two neighbouring runs share: a run of n units stores n + overlap tokens.
    pub const fn overlap(&self) -> usize {
        self.bigram as usize
    }

    /// Tokens of one page.
    pub const fn page_tokens(&self) -> usize {
        self.page_size + self.overlap()
    }

    /// Units of whole pages in a key of that many tokens.
    pub const fn aligned_units(&self, tokens: usize) -> usize {
        self.whole_pages(tokens.saturating_sub(self.overlap()))
    }

    /// So many units cut to whole pages. A division is dear, and most page sizes need none.
    #[inline]
    pub const fn whole_pages(&self, units: usize) -> usize {
        if self.page_size.is_power_of_two() { units & !(self.page_size - 1) } else { units - units % self.page_size }
    }
}
