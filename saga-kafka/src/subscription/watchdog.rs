use crate::subscription::state::Place;

/// Finds a consumer that receives nothing although records wait.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    last: Option<Ends>,
    /// Where it was when it was built anew: once for each place.
    rebuilt: Option<Ends>,
}

type Ends = Vec<(Place, i64)>;

impl Watchdog {
    /// Looks at how far each partition was read, and whether records wait behind. Answers whether the consumer is to be built anew:
    /// records waited at two looks, and none was read in between.
    ///
    /// What waits may be no records but the ends of transactions, which are never read; so no place is a reason twice.
    pub(crate) fn is_stuck(&mut self, ends: Ends, is_behind: bool) -> bool {
        let is_stuck = is_behind && self.last.as_ref() == Some(&ends) && self.rebuilt.as_ref() != Some(&ends);
        if is_stuck {
            self.rebuilt = Some(ends.clone());
        }
        self.last = is_behind.then_some(ends);
        is_stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(end: i64) -> Ends {
        vec![(("orders".to_owned(), 0), end)]
    }

    #[test]
    fn silence_while_records_wait_is_found_at_the_second_look() {
        let mut watchdog = Watchdog::default();
        assert!(!watchdog.is_stuck(ends(5), true));
        assert!(watchdog.is_stuck(ends(5), true));
    }

    #[test]
    fn what_is_read_or_has_nothing_to_read_is_left_alone() {
        let mut watchdog = Watchdog::default();
        for end in 0..5 {
            assert!(!watchdog.is_stuck(ends(end), true), "it reads");
        }
        assert!(!watchdog.is_stuck(ends(4), false), "nothing waits");
        assert!(!watchdog.is_stuck(ends(4), true), "something waits for the first time");
    }

    #[test]
    fn one_place_is_a_reason_once() {
        let mut watchdog = Watchdog::default();
        let looks = [true; 5].map(|is_behind| watchdog.is_stuck(ends(5), is_behind));
        assert_eq!(looks, [false, true, false, false, false]);
        assert!(!watchdog.is_stuck(ends(6), true));
        assert!(watchdog.is_stuck(ends(6), true));
    }
}
