//! Prints a saga: each step with the steps before it, which shows parallel branches, the progress of a list, and the taken arm
//! of a choice.

use std::fmt;

use saga_core::engine::SagaStatus;

pub(crate) struct Shown<'a>(pub(crate) &'a SagaStatus);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SagaStatus { summary, steps, .. } = self.0;
        match &summary.outcome {
            Some(outcome) => writeln!(f, "{}: {outcome}", summary.key)?,
            None => writeln!(f, "{}: {}", summary.key, summary.status)?,
        }
        for step in steps {
            if let Some(items) = step.items {
                let (done, all) = (items.done, items.all);
                writeln!(
                    f,
                    "  {:<14} {:<10} {done} of {all} done, {} undone",
                    step.step,
                    step.phase.as_str(),
                    items.undone
                )?;
                continue;
            }
            if step.is_item() {
                writeln!(f, "  {:<14} {}", step.step, step.phase.as_str())?;
                continue;
            }
            if !step.arms.is_empty() {
                let taken = step.taken.as_deref().unwrap_or("no");
                writeln!(f, "  {:<14} {:<10} {taken}", step.step, step.phase.as_str())?;
                continue;
            }
            if let Some(child) = &step.child {
                writeln!(f, "  {:<14} {:<10} the saga {}", step.step, step.phase.as_str(), child.key)?;
                continue;
            }
            let after = if step.after.is_empty() { "the start".to_owned() } else { step.after.join(" and ") };
            writeln!(f, "  {:<14} {:<10} after {after}", step.step, step.phase.as_str())?;
        }
        Ok(())
    }
}
