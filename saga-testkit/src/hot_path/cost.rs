use std::fmt::Debug;
use std::ops::{Add, Mul};

/// How often sagas run before their cost counts as too high.
const RUNS_MAX: u32 = 20;

/// What something cost, in counters and not in time. [`counted!`](crate::counted) declares one.
pub trait Cost: Copy + Debug + Add<Output = Self> + Mul<u64, Output = Self> {
    /// Each counter with its name.
    fn counters(&self) -> Vec<(&'static str, u64)>;

    /// The counters that are above the bound, by name.
    fn above(&self, bound: &Self) -> Vec<&'static str> {
        let both = self.counters().into_iter().zip(bound.counters());
        both.filter(|((_, cost), (_, bound))| cost > bound).map(|((name, _), _)| name).collect()
    }

    /// # Panics
    /// When a counter is above the bound.
    #[track_caller]
    fn assert_within(&self, bound: &Self, what: &str) {
        let above = self.above(bound);
        assert!(above.is_empty(), "{what} got heavier in {above:?}\n cost {self:?}\nbound {bound:?}");
    }
}

/// Runs sagas until their cost is within the bound, twenty times at most: a machine that is busy with something else splits
/// batches, and a path that got heavier is above the bound each time.
///
/// # Panics
/// When a counter is above the bound each time.
///
/// # Cancel safety
/// That of the run.
pub async fn assert_sagas_within<C: Cost>(bound: &C, mut run: impl AsyncFnMut() -> C) {
    for _ in 0..RUNS_MAX - 1 {
        if run().await.above(bound).is_empty() {
            return;
        }
    }
    run().await.assert_within(bound, "sagas");
}

/// What a batch may cost: so much for itself, and so much for each of its steps or sagas.
#[derive(Debug, Clone, Copy)]
pub struct Bound<C> {
    /// Of the batch, whatever it carries.
    pub batch: C,
    /// Of each that it carries.
    pub each: C,
    /// Of so many together, what none of them would cost alone.
    pub together: Option<(u64, C)>,
}

impl<C: Cost> Bound<C> {
    /// What so many in one batch may cost.
    pub fn of(&self, items: u64) -> C {
        let sum = self.batch + self.each * items;
        match self.together {
            Some((many, cost)) => sum + cost * (items / many),
            None => sum,
        }
    }
}

/// Declares a struct of counters that is a [`Cost`](crate::hot_path::Cost): each field with what it is called where it is
/// too high.
#[macro_export]
macro_rules! counted {
    ($(#[$about:meta])* $visible:vis struct $cost:ident { $($(#[$what:meta])* $field:ident: $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        $visible struct $cost {
            $($(#[$what])* $visible $field: u64,)+
        }

        impl $crate::hot_path::Cost for $cost {
            fn counters(&self) -> ::std::vec::Vec<(&'static str, u64)> {
                ::std::vec![$(($name, self.$field)),+]
            }
        }

        impl ::std::ops::Add for $cost {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { $($field: self.$field + other.$field),+ }
            }
        }

        impl ::std::ops::Mul<u64> for $cost {
            type Output = Self;

            fn mul(self, times: u64) -> Self {
                Self { $($field: self.$field * times),+ }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    counted! {
        /// What a test counts.
        struct Counted {
            /// Commits.
            commits: "commits",
            /// Pages.
            pages: "pages",
        }
    }

    #[test]
    fn what_is_above_a_bound_is_named() {
        let bound = Bound {
            batch: Counted { commits: 1, pages: 6 },
            each: Counted::default(),
            together: Some((10, Counted { commits: 0, pages: 1 })),
        };
        assert_eq!([bound.of(9).pages, bound.of(10).pages, bound.of(50).pages], [6, 7, 11]);
        let cost = Counted { commits: 1, pages: 12 };
        assert_eq!(cost.above(&bound.of(50)), ["pages"]);
        assert_eq!((cost + cost).above(&bound.of(50)), ["commits", "pages"]);
        cost.assert_within(&(bound.of(50) * 2), "two batches");
    }
}
