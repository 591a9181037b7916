/// A small seeded source of randomness.
///
/// It is xoshiro256** with its state filled by splitmix64, both by David Blackman and Sebastiano Vigna, who gave them to
/// the public domain (<https://prng.di.unimi.it>). It is written out here so that a seed means the same schedule for ever,
/// whatever a dependency changes.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The source of that seed.
    pub fn new(seed: u64) -> Self {
        let mut at = seed;
        Self { state: std::array::from_fn(|_| splitmix64(&mut at)) }
    }

    /// Sixty-four random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let drawn = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// A number below `bound`, evenly drawn; 0 when the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The upper half of the product: its bias is below 2^-32 for the small bounds of a schedule.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True so many times in a thousand.
    pub fn per_mille(&mut self, rate: u32) -> bool {
        self.below(1000) < u64::from(rate)
    }

    /// One of the items.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Another source, whose draws do not disturb this one's.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.bits())
    }
}

/// Mixes a number well: neighbouring seeds give unrelated results.
pub(crate) fn splitmix64(at: &mut u64) -> u64 {
    *at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *at;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// The first draws of the reference implementation for the state 1, 2, 3, 4.
    #[test]
    fn draws_what_the_reference_draws() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let drawn: [u64; 4] = std::array::from_fn(|_| random.bits());
        assert_eq!(drawn, [11520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn below_stays_below_and_reaches_everything() {
        let mut random = Random::new(7);
        let mut seen = [0_u32; 5];
        for _ in 0..1000 {
            seen[random.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }
}
