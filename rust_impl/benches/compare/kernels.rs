//! Ways to tell how many tokens a key and a stored run of equal length share from the front.

/// A token as keys and runs hold it: u32, or the int64 of Python's arrays.
pub trait Token: Copy + PartialEq {
    fn wide(self) -> u64;
}

impl Token for u32 {
    #[inline(always)]
    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl Token for i64 {
    #[inline(always)]
    fn wide(self) -> u64 {
        self as u64
    }
}

#[inline(always)]
pub fn element_loop<K: Token, S: Token>(key: &[K], stored: &[S]) -> usize {
    key.iter().zip(stored).take_while(|(k, s)| k.wide() == s.wide()).count()
}

/// Whole blocks without a branch for each element, which LLVM vectorises for whatever the function is compiled for.
#[inline(always)]
fn whole_blocks<const BLOCK: usize, K: Token, S: Token>(key: &[K], stored: &[S]) -> usize {
    let (keys, runs) = (key.as_chunks::<BLOCK>().0, stored.as_chunks::<BLOCK>().0);
    let equal = |(k, s): &(&[K; BLOCK], &[S; BLOCK])| {
        (0..BLOCK).fold(0, |difference, at| difference | (k[at].wide() ^ s[at].wide())) == 0
    };
    keys.iter().zip(runs).take_while(equal).count() * BLOCK
}

#[inline(always)]
pub fn blocks<K: Token, S: Token>(key: &[K], stored: &[S]) -> usize {
    let mut at = whole_blocks::<64, K, S>(key, stored);
    at += whole_blocks::<8, K, S>(&key[at..], &stored[at..]);
    at + element_loop(&key[at..], &stored[at..])
}

/// memcmp says whether, not where: the position is sought in a second pass.
pub fn memcmp_again<T: Token>(key: &[T], stored: &[T]) -> usize
where
    [T]: PartialEq,
{
    if key == stored { key.len() } else { blocks(key, stored) }
}

/// The position by halving: each step compares half of what is left.
pub fn memcmp_bisect<T: Token>(key: &[T], stored: &[T]) -> usize
where
    [T]: PartialEq,
{
    if key == stored {
        return key.len();
    }
    let (mut from, mut to) = (0, key.len());
    while to - from > 16 {
        let middle = usize::midpoint(from, to);
        if key[from..middle] == stored[from..middle] { from = middle } else { to = middle }
    }
    from + element_loop(&key[from..to], &stored[from..to])
}

/// memcmp block by block, the last one element by element.
pub fn memcmp_blocks<const BLOCK: usize, T: Token>(key: &[T], stored: &[T]) -> usize
where
    [T]: PartialEq,
{
    let equal = |(k, s): &(&[T], &[T])| k == s;
    let from = (key.chunks(BLOCK).zip(stored.chunks(BLOCK)).take_while(equal).count() * BLOCK).min(key.len());
    from + element_loop(&key[from..], &stored[from..])
}

/// An int64 key written as u32 into `scratch`, and whether every token fits.
#[inline(always)]
pub fn narrow(key: &[i64], scratch: &mut [u32]) -> bool {
    let mut high = 0;
    for (narrow, &token) in scratch.iter_mut().zip(key) {
        *narrow = token as u32;
        high |= token;
    }
    high as u64 >> 32 == 0
}
