//! What something cost, and what it may cost.

use std::ops::Add;

/// What a number of steps cost the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cost {
    /// Commits that wrote something.
    pub(crate) commits: u64,
    /// Statements that were run, the handlers' own among them.
    pub(crate) statements: u64,
    /// Pages that were written to the write-ahead log: each changed one once a commit.
    pub(crate) pages: u64,
}

/// What a batch may cost: so much for itself, and so much for each of its steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) batch: Cost,
    pub(crate) step: Cost,
    /// How many steps share a page that none of them would change alone.
    pub(crate) steps_per_page: u64,
}

impl Bound {
    /// What so many steps in one batch may cost.
    pub(crate) fn of(&self, steps: u64) -> Cost {
        Cost {
            commits: self.batch.commits + self.step.commits * steps,
            statements: self.batch.statements + self.step.statements * steps,
            pages: self.batch.pages + steps / self.steps_per_page,
        }
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            commits: self.commits + other.commits,
            statements: self.statements + other.statements,
            pages: self.pages + other.pages,
        }
    }
}

impl Cost {
    /// The counters that are above the bound, by name.
    pub(crate) fn above(&self, bound: &Self) -> Vec<&'static str> {
        let counters = [
            ("commits", self.commits, bound.commits),
            ("statements", self.statements, bound.statements),
            ("pages", self.pages, bound.pages),
        ];
        counters.into_iter().filter(|(_, cost, bound)| cost > bound).map(|(name, ..)| name).collect()
    }

    /// Fails when a counter is above the bound.
    #[track_caller]
    pub(crate) fn assert_within(&self, bound: &Self, what: &str) {
        let above = self.above(bound);
        assert!(above.is_empty(), "{what} got heavier in {above:?}\n cost {self:?}\nbound {bound:?}");
    }
}
