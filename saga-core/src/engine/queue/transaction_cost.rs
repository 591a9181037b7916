//! What a transaction takes beside its handlers: how many commands should therefore share one.

use std::time::Duration;

/// The cost covers about this many of the latest transactions.
const REMEMBERED: u32 = 16;

/// A shorter rest is work for each command, as that of the store in memory, and no commit that commands could share: two workers do
/// it side by side. Measured by `bench memory`: with 16 sagas in flight it is 1.8 times as fast so.
const REST_MIN: Duration = Duration::from_micros(300);

/// A moving average of the time of a transaction: of the handlers for each command, and of all the rest.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TransactionCost {
    handlers: Duration,
    rest: Duration,
}

impl TransactionCost {
    /// Adds a transaction with so many commands: how long it took, and its handlers in it.
    pub(super) fn add(&mut self, commands: usize, took: Duration, handlers: Duration) {
        let Some(of_each) = u32::try_from(commands).ok().and_then(|commands| handlers.checked_div(commands)) else {
            return;
        };
        self.handlers = (self.handlers * (REMEMBERED - 1) + of_each) / REMEMBERED;
        self.rest = (self.rest * (REMEMBERED - 1) + took.saturating_sub(handlers)) / REMEMBERED;
    }

    /// With so many commands, the handlers take as long as the rest. With fewer, a second transaction beside the first one costs more
    /// than it gains.
    pub(super) fn worthwhile(&self) -> usize {
        if self.rest < REST_MIN {
            return 0;
        }
        let commands = self.rest.as_nanos() / self.handlers.as_nanos().max(1);
        usize::try_from(commands).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(handler: Duration, rest: Duration) -> TransactionCost {
        let mut cost = TransactionCost::default();
        (0..10 * REMEMBERED).for_each(|_| cost.add(5, handler * 5 + rest, handler * 5));
        cost
    }

    #[test]
    fn the_less_the_handlers_take_the_more_of_them_share_a_transaction() {
        assert_eq!(TransactionCost::default().worthwhile(), 0, "nothing is known");
        let rest = Duration::from_millis(1);
        assert_eq!(cost(Duration::from_micros(99), rest).worthwhile(), 10);
        assert_eq!(cost(Duration::from_millis(2), rest).worthwhile(), 0);
        assert!(cost(Duration::ZERO, rest).worthwhile() > 1_000);
        assert_eq!(cost(Duration::ZERO, REST_MIN / 2).worthwhile(), 0, "there is no commit to be shared");
    }

    #[test]
    fn a_transaction_without_commands_says_nothing() {
        let mut cost = cost(Duration::from_micros(99), Duration::from_millis(1));
        cost.add(0, Duration::from_secs(9), Duration::ZERO);
        assert_eq!(cost.worthwhile(), 10);
    }
}
