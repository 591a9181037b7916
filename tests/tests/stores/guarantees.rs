//! The guarantees G1 to G13, each in its words and as a test that names it.

mod calls;
mod compensation;
mod messages;
mod missing_table;
mod neighbours;
mod observing;
mod recovery;
mod starts;
mod steps;
mod tenants;

use saga_core::Outcome;

fn is_completed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Completed { .. })
}

fn is_compensated(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Compensated { .. })
}
