//! What one run does.

use clap::ValueEnum;

use crate::work::{Order, Step};

/// In W-undo each fifth order is declined.
const DECLINED_EACH: u32 = 5;

/// The kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Work {
    /// Every saga completes.
    #[value(name = "W")]
    Plain,
    /// One saga in five fails at its third step and undoes the second and the first.
    #[value(name = "W-undo")]
    Undo,
}

impl Work {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "W",
            Self::Undo => "W-undo",
        }
    }
}

/// One run: so many sagas, so many at once, on a database of its own.
#[derive(Debug, Clone)]
pub struct Job {
    /// The address of the database, which has the business tables and nothing else.
    pub url: String,
    /// How many sagas are in flight at once.
    pub in_flight: u32,
    /// How many sagas there are in all.
    pub sagas: u32,
    pub(crate) work: Work,
}

impl Job {
    /// The order with this number.
    pub fn order(&self, number: u32) -> Order {
        let is_declined = self.work == Work::Undo && number % DECLINED_EACH == DECLINED_EACH - 1;
        Order { id: number.into(), amount: i64::from(number % 100) + 1, is_declined }
    }

    /// All orders, by their numbers.
    pub fn orders(&self) -> impl Iterator<Item = Order> {
        (0..self.sagas).map(|number| self.order(number))
    }

    /// How many rows `step` leaves in all.
    pub(crate) fn rows_of(&self, step: Step) -> u32 {
        let declined = if self.work == Work::Undo { self.sagas / DECLINED_EACH } else { 0 };
        match step {
            Step::Reserve | Step::Charge => self.sagas,
            Step::Confirm => self.sagas - declined,
            Step::Refund | Step::Release => declined,
        }
    }

    /// The steps and undos that are done in all, each of which leaves one row.
    pub(crate) fn steps(&self) -> u32 {
        Step::ALL.iter().map(|step| self.rows_of(*step)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Job, Work};
    use crate::work::Step;

    #[test]
    fn the_rows_are_those_of_the_orders() {
        for sagas in [1, 4, 5, 9, 10, 600] {
            let job = Job { url: String::new(), in_flight: 1, sagas, work: Work::Undo };
            let declined = u32::try_from(job.orders().filter(|order| order.is_declined).count()).unwrap_or(u32::MAX);
            let rows = Step::ALL.map(|step| job.rows_of(step));
            assert_eq!(rows, [sagas, sagas, sagas - declined, declined, declined], "{sagas} sagas");
            assert_eq!(job.steps(), 3 * sagas + declined, "{sagas} sagas");
        }
    }

    #[test]
    fn plain_work_declines_nothing() {
        let job = Job { url: String::new(), in_flight: 1, sagas: 50, work: Work::Plain };
        assert!(job.orders().all(|order| !order.is_declined));
        assert_eq!(job.steps(), 150);
    }
}
