//! Chance that can be had again: numbers that a seed decides.

use std::ops::Range;

/// A source of numbers. The same seed gives the same numbers, on every machine and in every version of
/// this crate that has the same major number.
///
/// ```
/// use apibinding::sim::Chance;
///
/// let mut chance = Chance::new(7);
/// let rolls: Vec<u64> = (0..3).map(|_| chance.below(6)).collect();
/// let mut again = Chance::new(7);
/// assert!(rolls.iter().all(|roll| again.below(6) == *roll));
/// ```
#[derive(Clone, Debug)]
pub struct Chance {
    /// `None`: nothing is left to chance.
    state: Option<u64>,
}

impl Chance {
    /// Numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: Some(seed) }
    }

    /// A source of its own for one purpose: what is drawn from it changes nothing that others draw, and
    /// drawing from those changes nothing here.
    #[must_use]
    pub fn of(seed: u64, purpose: &str) -> Self {
        let spread = purpose.bytes().fold(mix(seed), |state, byte| mix(state ^ u64::from(byte)));
        Self { state: Some(spread) }
    }

    /// No chance at all: every number is the lowest that may be.
    #[must_use]
    pub fn none() -> Self {
        Self { state: None }
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        let Some(state) = &mut self.state else { return 0 };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        finish(*state)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The bias is end / 2^64: nothing that a simulation could show.
        self.any().checked_rem(end).unwrap_or(0)
    }

    /// A number of a range; its start if the range is empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// True so many times in a thousand; never, where nothing is left to chance.
    pub fn permille(&mut self, times: u64) -> bool {
        self.state.is_some() && self.below(1000) < times
    }

    /// One of these; `None` if there are none.
    pub fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(usize::try_from(self.below(items.len() as u64)).ok()?)
    }

    /// Puts these into another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, usize::try_from(self.below(end as u64 + 1)).unwrap_or(end));
        }
    }
}

/// Spreads the bits of a number (splitmix64).
pub(super) fn mix(number: u64) -> u64 {
    finish(number.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_within() {
        let mut chance = Chance::new(1);
        assert!((0..1000).all(|_| (3..9).contains(&chance.within(3..9))));
        assert_eq!((chance.below(0), chance.within(5..5), chance.one_of::<u8>(&[])), (0, 5, None));
        let hits = (0..10_000).filter(|_| chance.permille(250)).count();
        assert!((2300..2700).contains(&hits), "{hits}");
    }

    #[test]
    fn purposes_do_not_share_numbers() {
        let (mut one, mut other) = (Chance::of(7, "users"), Chance::of(7, "faults"));
        assert!((0..100).all(|_| one.any() != other.any()));
    }

    #[test]
    fn shuffling_keeps_what_is_there() {
        let mut items: Vec<u32> = (0..100).collect();
        Chance::new(3).shuffle(&mut items);
        assert!(items.windows(2).any(|pair| pair[0] > pair[1]));
        items.sort();
        assert!(items.into_iter().eq(0..100));
    }
}
