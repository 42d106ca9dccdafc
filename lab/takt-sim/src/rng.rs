//! Deterministic random numbers: xoshiro256++ seeded by `SplitMix64`. Independent streams are
//! forked.

/// A seeded random number generator.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

/// Parts in a million, the unit of all probabilities of this crate.
pub const MILLION: u32 = 1_000_000;

impl Rng {
    /// Creates the generator of a seed. Every seed is valid.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| split_mix(&mut state)))
    }

    /// Creates an independent generator from the next value of this one and `salt`.
    pub fn fork(&mut self, salt: u64) -> Self {
        Self::new(self.next() ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns 64 random bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends, so it is no iterator")]
    pub fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of 2^-64 times the bound is negligible.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number between the two, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Returns true with a probability of `parts` in a million.
    pub fn chance(&mut self, parts: u32) -> bool {
        parts != 0 && self.below(u64::from(MILLION)) < u64::from(parts)
    }

    /// Returns one of the elements. The slice is not empty.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_determines_values_within_bounds() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            let mut fork = rng.fork(7);
            [(); 50].map(|()| (rng.between(3, 9), fork.below(10), rng.chance(500_000)))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().all(|(a, b, _)| (3..=9).contains(a) && *b < 10));
        let mut rng = Rng::new(0);
        let hits = (0..10_000).filter(|_| rng.chance(100_000)).count();
        assert!((900..1100).contains(&hits), "{hits}");
    }
}
