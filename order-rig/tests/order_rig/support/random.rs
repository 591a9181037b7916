/// A seed that is printed, so that a run can be repeated: that of the environment variable, or a fresh one.
pub(crate) fn seed_from_env(variable: &str) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let seed = match std::env::var(variable) {
        Ok(seed) => seed.parse().unwrap_or_else(|error| panic!("{variable}={seed}: {error}")),
        Err(_) => RandomState::new().hash_one(0) >> 32,
    };
    println!("the seed is {seed}; repeat with {variable}={seed}");
    seed
}
