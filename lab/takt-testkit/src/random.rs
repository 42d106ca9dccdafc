//! Pseudorandom numbers from a seed, for test inputs.

/// SplitMix64 generator. A failing test prints its seed.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `bound`, which is at least 1 and not included.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// Returns true once in `n` calls on average.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn numbers_depend_on_the_seed_and_stay_within_bounds() {
        let (mut a, mut b) = (Random(7), Random(7));
        assert_eq!([a.next(), a.next()], [b.next(), b.next()]);
        assert!((0..1000).all(|_| a.below(3) < 3 && (4..=6).contains(&a.between(4, 6))));
        assert!((0..1000).any(|_| a.one_in(10)) && !(0..1000).all(|_| a.one_in(10)));
    }
}
