use std::fmt;

use saga_core::{
    Rejection,
    store::{SagaRow, SagaWithSteps, StepRecord, WorkStatus},
};

use super::time::{after, moment};

/// All that is known of one saga, for people.
pub(super) struct Shown<'a>(pub(super) &'a SagaWithSteps);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SagaWithSteps { saga, records, history, work } = self.0;
        let start = saga.started_at;
        writeln!(f, "{} is {} ({})", saga.key.as_str(), saga.status, saga.definition)?;
        writeln!(f, "started {} UTC, {}", moment(start), ended(saga))?;
        writeln!(f, "\n{:<22} {:<10} {:>8} {:>10} {:>11}", "step", "outcome", "attempts", "took", "at")?;
        for record in records {
            let StepRecord { step, outcome, attempts, took, recorded_at, .. } = record;
            let took = format!("{:.1} ms", took.as_secs_f64() * 1_000.0);
            let at = after(start, *recorded_at);
            let (step, outcome) = (step.as_str(), outcome.as_str());
            writeln!(f, "{step:<22} {outcome:<10} {attempts:>8} {took:>10} {at:>11}  {}", why(record))?;
        }
        if !history.is_empty() {
            writeln!(f, "\nwhat else happened")?;
        }
        for (at, entry) in history {
            let step = entry.step.as_ref().map_or("the saga", |step| step.as_str());
            let (at, kind) = (after(start, *at), entry.kind.as_str());
            writeln!(f, "{at:>11}  {step} {kind}, attempt {}: {}", entry.attempt, entry.detail)?;
        }
        if !work.is_empty() {
            writeln!(f, "\nwhat is to be done")?;
        }
        for WorkStatus { step, attempts, due_at, owner, error, .. } in work {
            let (due, held) = (after(start, *due_at), if owner.is_some() { "under way" } else { "waiting" });
            let error = error.as_deref().map(|error| format!(", after: {error}")).unwrap_or_default();
            writeln!(f, "{due:>11}  {} {held}, {attempts} attempts{error}", step.as_str())?;
        }
        Ok(())
    }
}

fn ended(saga: &SagaRow) -> String {
    match saga.ended_at {
        Some(at) => format!("ended {}", after(saga.started_at, at)),
        None => format!("last advanced {}", after(saga.started_at, saga.advanced_at)),
    }
}

/// Why a step was not done.
fn why(record: &StepRecord) -> String {
    let Some(error) = &record.error else { return String::new() };
    match serde_json::from_slice::<Rejection>(error) {
        Ok(rejection) => rejection.message().to_owned(),
        Err(_) => String::from_utf8_lossy(error).into_owned(),
    }
}
