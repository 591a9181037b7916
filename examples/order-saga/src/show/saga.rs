use std::fmt;

use saga_core::engine::{Happening, SagaStatus, SagaSummary, StepStatus};

use super::time::{after, moment};

/// All that is known of one saga, for people.
pub(super) struct Shown<'a>(pub(super) &'a SagaStatus);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SagaStatus { summary, steps, history, .. } = self.0;
        let start = summary.started_at;
        writeln!(f, "{} ({} version {}): {}", summary.key, summary.saga, summary.version, stands(summary))?;
        match summary.ended_at {
            Some(at) => writeln!(f, "started {} UTC, ended {}", moment(start), after(start, at))?,
            None => writeln!(f, "started {} UTC, moved {}", moment(start), after(start, summary.advanced_at))?,
        }
        writeln!(f, "\n{:<16} {:<10} {:>8} {:>10} {:>10} {:>10}", "step", "is", "attempts", "took", "at", "undone")?;
        for step in steps {
            let StepStatus { step: name, phase, attempts, took, recorded_at, undone_at, .. } = step;
            let took = took.map(|took| format!("{:.1} ms", took.as_secs_f64() * 1_000.0)).unwrap_or_default();
            let at = recorded_at.map(|at| after(start, at)).unwrap_or_default();
            let undone = undone_at.map(|at| after(start, at)).unwrap_or_default();
            let line = format!("{name:<16} {:<10} {attempts:>8} {took:>10} {at:>10} {undone:>10}", phase.as_str());
            writeln!(f, "{}", format!("{line}  {}", said(step)).trim_end())?;
        }
        if !history.is_empty() {
            writeln!(f, "\nwhat else happened")?;
        }
        for Happening { at, kind, step, attempt, detail, .. } in history {
            let step = step.as_ref().map_or("the saga", |step| step.as_str());
            writeln!(f, "{:>10}  {step}: {}, attempt {attempt}: {detail}", after(start, *at), kind.as_str())?;
        }
        Ok(())
    }
}

/// Where it stands, and why.
fn stands(summary: &SagaSummary) -> String {
    match &summary.outcome {
        Some(outcome) => outcome.to_string(),
        None => summary.status.to_string(),
    }
}

/// Why a step was not done, and what it waits for.
fn said(step: &StepStatus) -> String {
    let error = step.error.clone().unwrap_or_default();
    match step.due_at {
        Some(at) => format!("{error} (tried again at {} UTC)", moment(at)),
        None => error,
    }
}
