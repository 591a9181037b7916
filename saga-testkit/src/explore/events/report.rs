use std::fmt;

use super::super::report::Broken;

/// The result of an exploration of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsExplored {
    pub(super) runs: u64,
    pub(super) orders: u64,
    pub(super) doubled: u64,
    pub(super) crashes: u64,
    pub(super) boundaries: Vec<String>,
    pub(super) left_out: usize,
}

/// A failed exploration of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFailures {
    /// The failed runs.
    pub broken: Vec<Broken>,
    /// The whole exploration.
    pub explored: EventsExplored,
}

impl EventsExplored {
    /// How many times the services were run.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// The number of orders in which each event arrived once.
    pub fn orders(&self) -> u64 {
        self.orders
    }

    /// How many runs repeated an event.
    pub fn doubled(&self) -> u64 {
        self.doubled
    }

    /// How many runs had a crash: one for each service and each boundary that it passes.
    pub fn crashes(&self) -> u64 {
        self.crashes
    }

    /// The boundaries at which a service was crashed, each with its name.
    pub fn boundaries(&self) -> &[String] {
        &self.boundaries
    }

    /// How many orders were not run, because there are too many. A smaller saga is explored completely.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

impl fmt::Display for EventsExplored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, orders, doubled, crashes, left_out, .. } = self;
        write!(
            f,
            "{runs} runs: {orders} orders of arrivals, {doubled} with one event once more, {crashes} with a crash"
        )?;
        if *left_out > 0 {
            write!(f, "; {left_out} orders were not run")?;
        }
        Ok(())
    }
}

impl fmt::Display for EventFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of {} runs went wrong:", self.broken.len(), self.explored.runs)?;
        for broken in &self.broken {
            writeln!(f, "- {}: {}", broken.disturbance, broken.problem)?;
        }
        write!(f, "{}", self.explored)
    }
}

impl std::error::Error for EventFailures {}
