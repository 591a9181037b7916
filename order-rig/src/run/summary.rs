use std::{collections::BTreeMap, fmt, time::Duration};

use serde::Serialize;

use super::{drive::Driven, progress::per_second};
use crate::{
    orders::{Intake, Numbered},
    outside, shop,
};

/// The result of a run, as it is printed.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Lines that were read: started, already known or refused.
    pub orders: usize,
    /// Sagas that this run started.
    pub started: usize,
    /// Orders that an earlier run or an earlier line had started.
    pub already_started: usize,
    /// Lines that were not taken.
    pub refused: usize,
    /// Orders of this run that are completed.
    pub completed: usize,
    /// Orders of this run that are compensated.
    pub compensated: usize,
    /// The same by reason.
    pub compensated_by_reason: BTreeMap<String, usize>,
    /// Orders that ended before. The database keeps only their tombstones.
    pub tombstones: usize,
    /// Orders of this run, and of earlier ones, that need a person.
    pub stuck: usize,
    /// Steps that took effect in this store so far.
    pub steps: i64,
    /// Undos that took effect in this store so far.
    pub undos: i64,
    /// The same by the step that was undone.
    pub undos_by_step: BTreeMap<&'static str, i64>,
    /// Calls to the services outside that repeated an earlier one, so far.
    pub retries: i64,
    /// Repeated calls that the services outside had carried out before, and did not carry out again, so far.
    pub duplicates_refused: i64,
    /// How long the run took.
    pub elapsed_ms: u64,
    /// Sagas that this run started or found unfinished, by the second.
    pub sagas_per_second: f64,
}

impl Summary {
    /// What is known when the lines were read, and the orders to run.
    pub(super) fn of(intake: Intake) -> (Self, Vec<Numbered>) {
        let Intake { orders, repeated, refused } = intake;
        let lines = orders.len() + repeated + refused.len();
        (Self { orders: lines, already_started: repeated, refused: refused.len(), ..Self::default() }, orders)
    }

    /// Adds how the orders ended.
    pub(super) fn add(&mut self, driven: &Driven, found_unfinished: usize, elapsed: Duration) {
        self.started = driven.started;
        self.already_started += driven.already_started;
        self.refused += driven.refused.len();
        self.completed = driven.completed;
        self.compensated = driven.compensated();
        self.compensated_by_reason.clone_from(&driven.compensated_by_reason);
        self.tombstones = driven.tombstones;
        self.stuck = driven.stuck.len();
        self.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.sagas_per_second = (per_second(driven.started + found_unfinished, elapsed) * 10.0).round() / 10.0;
    }

    /// Fills in what really took effect: it is counted in the shop's tables and in the books outside, not by the runtime.
    pub(super) fn count(&mut self, shop: &shop::Tally, outside: &outside::Tally) {
        self.steps = shop.placed + shop.reserved + outside.charged + outside.booked + shop.confirmed;
        self.undos_by_step = BTreeMap::from([
            ("place-order", shop.cancelled),
            ("reserve-stock", shop.released),
            ("charge-card", outside.refunded),
            ("book-shipment", outside.cancelled),
        ]);
        self.undos = self.undos_by_step.values().sum();
        self.retries = outside.repeated;
        self.duplicates_refused = outside.replayed;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: &dyn fmt::Display| writeln!(f, "{name:<36} {value:>10}");
        row("orders", &self.orders)?;
        row("  started", &self.started)?;
        row("  already known", &self.already_started)?;
        row("  refused", &self.refused)?;
        row("completed", &self.completed)?;
        row("compensated", &self.compensated)?;
        for (reason, count) in &self.compensated_by_reason {
            row(&format!("  {reason}"), count)?;
        }
        row("stuck", &self.stuck)?;
        row("steps that took effect", &self.steps)?;
        row("undos that took effect", &self.undos)?;
        for (step, count) in &self.undos_by_step {
            row(&format!("  {step}"), count)?;
        }
        row("calls outside that were retries", &self.retries)?;
        row("duplicates refused", &self.duplicates_refused)?;
        row("elapsed", &format!("{:.3} s", Duration::from_millis(self.elapsed_ms).as_secs_f64()))?;
        row("sagas/s", &self.sagas_per_second)
    }
}
