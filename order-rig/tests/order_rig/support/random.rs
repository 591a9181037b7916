/// Random numbers from a seed that is printed, so that a run can be repeated.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A seed that is printed: that of the environment variable, or one that nobody has seen before.
    pub(crate) fn seed_from_env(variable: &str) -> u64 {
        use std::hash::{BuildHasher, RandomState};
        let seed = match std::env::var(variable) {
            Ok(seed) => seed.parse().unwrap_or_else(|error| panic!("{variable}={seed}: {error}")),
            Err(_) => RandomState::new().hash_one(0) >> 32,
        };
        println!("the seed is {seed}; repeat with {variable}={seed}");
        seed
    }

    /// The numbers of one run of many.
    pub(crate) fn new(seed: u64, run: u64) -> Self {
        let mut random = Self(seed);
        for _ in 0..=run {
            random = Self(random.below(u64::MAX));
        }
        random
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
