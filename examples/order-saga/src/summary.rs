//! The printed result of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use saga_cli::print_remark;
use saga_core::{Key, Outcome};

#[derive(Default)]
pub(crate) struct Summary {
    started: usize,
    already_started: usize,
    refused: usize,
    completed: usize,
    /// The number of compensated orders for each reason.
    compensated: BTreeMap<String, usize>,
    stuck: usize,
    /// Orders that were purged down to a tombstone.
    purged: usize,
    pub(crate) repeated_calls: i64,
    pub(crate) took: Duration,
}

impl Summary {
    /// Counts an invalid line.
    pub(crate) fn refuse(&mut self, refusal: &str) {
        print_remark(refusal);
        self.refused += 1;
    }

    /// Counts an order that has ended or is stuck.
    pub(crate) fn add(&mut self, key: &Key, already_started: bool, outcome: &Outcome) {
        *(if already_started { &mut self.already_started } else { &mut self.started }) += 1;
        match outcome {
            Outcome::Completed { .. } => self.completed += 1,
            // An order of long ago, whose saga was purged.
            Outcome::Tombstone { .. } => self.purged += 1,
            Outcome::Compensated { reason, .. } => {
                // "out of stock: NW-011" is one reason, whichever the product; the runtime adds a remark in brackets.
                let reason = reason.message().split([':', '(']).next().unwrap_or_default().trim();
                *self.compensated.entry(reason.to_owned()).or_default() += 1;
            }
            stuck @ Outcome::Stuck { .. } => {
                print_remark(format_args!("{key} is {stuck}; look at it with: order-saga show {key}"));
                self.stuck += 1;
            }
        }
    }

    /// Whether an order is stuck or a line was refused.
    pub(crate) fn needs_person(&self) -> bool {
        let refused = self.refused;
        if refused > 0 {
            print_remark(format_args!(
                "refused: {refused}; correct these lines and run the file again: what is known is not run twice"
            ));
        }
        refused + self.stuck > 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: &dyn fmt::Display| writeln!(f, "{name:<36} {value:>10}");
        row("orders", &(self.started + self.already_started + self.refused))?;
        row("  started", &self.started)?;
        row("  already known", &self.already_started)?;
        row("  refused", &self.refused)?;
        row("completed", &self.completed)?;
        row("compensated", &self.compensated.values().sum::<usize>())?;
        for (reason, count) in &self.compensated {
            row(&format!("  {reason}"), count)?;
        }
        if self.purged > 0 {
            row("ended long ago", &self.purged)?;
        }
        row("stuck", &self.stuck)?;
        row("calls outside that were retries", &self.repeated_calls)?;
        row("elapsed", &format!("{:.3} s", self.took.as_secs_f64()))
    }
}
