//! How many slots and permits are in use.

use super::concurrency_key::{ConcurrencyKey, Pool};

/// For one part that is left free, a definition may take so many: alone it takes all but an eighth, which is there for the
/// first of any other definition, and two take half each.
pub(crate) const SHARES: usize = 7;

/// How much of something is taken, wherever it counts.
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

    pub(crate) fn of_definition(&self, seat: ConcurrencyKey) -> usize {
        self.shares.get(seat.definition as usize).map_or(0, |shares| shares[seat.pool as usize])
    }

    /// What counts against the limit of the seat's definition, in its own pool or in both.
    pub(crate) fn of_limited(&self, seat: ConcurrencyKey, in_both: bool) -> usize {
        let of = self.limited.get(seat.definition as usize).copied().unwrap_or_default();
        if in_both { of.iter().sum() } else { of[seat.pool as usize] }
    }

    pub(crate) fn of_step(&self, step: u32) -> usize {
        self.steps.get(step as usize).copied().unwrap_or_default()
    }

    /// How many more of `all` the seat's definition may take, so that others find some.
    pub(crate) fn fair_room(&self, seat: ConcurrencyKey, all: usize, users: usize) -> usize {
        let free = all.saturating_sub(self.of_pool(seat.pool));
        if users <= 1 || free == 0 {
            return free;
        }
        let own = self.of_definition(seat);
        let allowed = SHARES * free;
        let more = allowed.saturating_sub(own) / (SHARES + 1);
        // The last one goes to the user with the fewest.
        more.max(usize::from(own < allowed)).min(free)
    }

    pub(crate) fn enter_pool(&mut self, seat: ConcurrencyKey) {
        self.pools[seat.pool as usize] += 1;
        if let Some(shares) = self.shares.get_mut(seat.definition as usize) {
            shares[seat.pool as usize] += 1;
        }
    }

    pub(crate) fn leave_pool(&mut self, seat: ConcurrencyKey) {
        self.pools[seat.pool as usize] -= 1;
        if let Some(shares) = self.shares.get_mut(seat.definition as usize) {
            shares[seat.pool as usize] -= 1;
        }
    }

    pub(crate) fn enter_limits(&mut self, seat: ConcurrencyKey) {
        if let Some(limited) = self.limited.get_mut(seat.definition as usize) {
            limited[seat.pool as usize] += 1;
        }
        if let Some(step) = seat.step.and_then(|step| self.steps.get_mut(step as usize)) {
            *step += 1;
        }
    }

    pub(crate) fn leave_limits(&mut self, seat: ConcurrencyKey) {
        if let Some(limited) = self.limited.get_mut(seat.definition as usize) {
            limited[seat.pool as usize] -= 1;
        }
        if let Some(step) = seat.step.and_then(|step| self.steps.get_mut(step as usize)) {
            *step -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(definition: u32) -> ConcurrencyKey {
        ConcurrencyKey { pool: Pool::Calls, definition, step: None }
    }

    fn fill(usage: &mut Usage, definition: u32, all: usize) -> usize {
        let mut taken = 0;
        while usage.fair_room(seat(definition), all, 3) > 0 {
            usage.enter_pool(seat(definition));
            taken += 1;
        }
        taken
    }

    #[test]
    fn one_definition_leaves_an_eighth_for_the_others() {
        let mut usage = Usage::new(3, 0);
        assert_eq!(usage.fair_room(seat(0), 64, 3), 56);
        assert_eq!(fill(&mut usage, 0, 64), 56);
        assert_eq!(fill(&mut usage, 1, 64), 7, "the last one is for a third");
        assert_eq!(fill(&mut usage, 2, 64), 1);
        // What the first gives back goes to those who have less.
        for _ in 0..8 {
            usage.leave_pool(seat(0));
        }
        assert_eq!((usage.fair_room(seat(0), 64, 3), usage.fair_room(seat(2), 64, 3)), (1, 6));
    }

    #[test]
    fn alone_a_definition_takes_all() {
        let usage = Usage::new(1, 0);
        assert_eq!(usage.fair_room(seat(0), 64, 1), 64);
    }

    #[test]
    fn what_is_too_little_to_be_shared_out_goes_to_whoever_comes() {
        let mut usage = Usage::new(3, 0);
        assert_eq!((fill(&mut usage, 0, 2), usage.of_pool(Pool::Calls)), (2, 2));
    }
}
