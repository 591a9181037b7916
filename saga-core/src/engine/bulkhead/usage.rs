//! How many slots, or permits, are in use.

use super::concurrency_key::{ConcurrencyKey, Pool};

/// A definition may take this many parts for each part that stays free. One definition alone takes all but an eighth, so that
/// another one can start at once; two take nearly half each.
pub(crate) const SHARES: usize = 7;

/// How many are taken, by pool, definition and limited step.
#[derive(Debug)]
pub(crate) struct Usage {
    pools: [usize; 2],
    /// By pool, for each definition.
    shares: Vec<[usize; 2]>,
    /// What counts against the limit of each definition, by pool.
    limited: Vec<[usize; 2]>,
    steps: Vec<usize>,
}

impl Usage {
    pub(crate) fn new(definitions: usize, step_limits: usize) -> Self {
        let none = vec![[0; 2]; definitions];
        Self { pools: [0; 2], shares: none.clone(), limited: none, steps: vec![0; step_limits] }
    }

    pub(crate) fn of_pool(&self, pool: Pool) -> usize {
        self.pools[pool as usize]
    }

    pub(crate) fn of_definition(&self, key: ConcurrencyKey) -> usize {
        self.shares.get(key.definition as usize).map_or(0, |shares| shares[key.pool as usize])
    }

    /// What counts against the limit of the key's definition, in its own pool or in both.
    pub(crate) fn of_limited(&self, key: ConcurrencyKey, in_both: bool) -> usize {
        let of = self.limited.get(key.definition as usize).copied().unwrap_or_default();
        if in_both { of.iter().sum() } else { of[key.pool as usize] }
    }

    pub(crate) fn of_step(&self, step: u32) -> usize {
        self.steps.get(step as usize).copied().unwrap_or_default()
    }

    /// How many more of `all` the definition may take, so that the other definitions find some too.
    pub(crate) fn fair_room(&self, key: ConcurrencyKey, all: usize, users: usize) -> usize {
        let free = all.saturating_sub(self.of_pool(key.pool));
        if users <= 1 || free == 0 {
            return free;
        }
        let own = self.of_definition(key);
        let allowed = SHARES * free;
        let more = allowed.saturating_sub(own) / (SHARES + 1);
        // The last one goes to the definition with the fewest.
        more.max(usize::from(own < allowed)).min(free)
    }

    pub(crate) fn enter_pool(&mut self, key: ConcurrencyKey) {
        self.pools[key.pool as usize] += 1;
        if let Some(shares) = self.shares.get_mut(key.definition as usize) {
            shares[key.pool as usize] += 1;
        }
    }

    pub(crate) fn leave_pool(&mut self, key: ConcurrencyKey) {
        self.pools[key.pool as usize] -= 1;
        if let Some(shares) = self.shares.get_mut(key.definition as usize) {
            shares[key.pool as usize] -= 1;
        }
    }

    pub(crate) fn enter_limits(&mut self, key: ConcurrencyKey) {
        if let Some(limited) = self.limited.get_mut(key.definition as usize) {
            limited[key.pool as usize] += 1;
        }
        if let Some(step) = key.step.and_then(|step| self.steps.get_mut(step as usize)) {
            *step += 1;
        }
    }

    pub(crate) fn leave_limits(&mut self, key: ConcurrencyKey) {
        if let Some(limited) = self.limited.get_mut(key.definition as usize) {
            limited[key.pool as usize] -= 1;
        }
        if let Some(step) = key.step.and_then(|step| self.steps.get_mut(step as usize)) {
            *step -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(definition: u32) -> ConcurrencyKey {
        ConcurrencyKey { pool: Pool::Calls, definition, step: None }
    }

    fn fill(usage: &mut Usage, definition: u32, all: usize) -> usize {
        let mut taken = 0;
        while usage.fair_room(key(definition), all, 3) > 0 {
            usage.enter_pool(key(definition));
            taken += 1;
        }
        taken
    }

    #[test]
    fn one_definition_leaves_an_eighth_for_the_others() {
        let mut usage = Usage::new(3, 0);
        assert_eq!(usage.fair_room(key(0), 64, 3), 56);
        assert_eq!(fill(&mut usage, 0, 64), 56);
        assert_eq!(fill(&mut usage, 1, 64), 7, "the last one is for a third");
        assert_eq!(fill(&mut usage, 2, 64), 1);
        // What the first gives back goes to those who have less.
        for _ in 0..8 {
            usage.leave_pool(key(0));
        }
        assert_eq!((usage.fair_room(key(0), 64, 3), usage.fair_room(key(2), 64, 3)), (1, 6));
    }

    #[test]
    fn alone_a_definition_takes_all() {
        let usage = Usage::new(1, 0);
        assert_eq!(usage.fair_room(key(0), 64, 1), 64);
    }

    #[test]
    fn what_is_too_little_to_be_shared_out_goes_to_whoever_comes() {
        let mut usage = Usage::new(3, 0);
        assert_eq!((fill(&mut usage, 0, 2), usage.of_pool(Pool::Calls)), (2, 2));
    }
}
