//! Delayed starts, deadlines and naps, as the ledger shows them.

use crate::checker::{Ledger, Op, Standing, What};
use crate::sim::world::{Fault, World};

/// Notes what had its time.
pub(crate) fn note_times(world: &World, ledger: &Ledger) {
    for (saga, (plan, end)) in (0..).zip(ledger.sagas.iter().zip(&ledger.finals)) {
        let is_over = matches!(end.standing, Standing::Completed | Standing::Compensated);
        let is_called = |step: u8| {
            let of_step = |what: &What| matches!(what, What::Entered { saga: of, step: called, op: Op::Do, .. } if *of == saga && *called == step);
            ledger.entries.iter().any(|entry| of_step(&entry.what))
        };
        world.hit_if(plan.time.begins_in > 0 && is_over, Fault::BegunLater);
        world.hit_if(end.overdue_at.is_some(), Fault::Overdue);
        world.hit_if(plan.time.within.is_some() && is_over && end.overdue_at.is_none(), Fault::InTime);
        let Some(variant) = end.variant.and_then(|variant| plan.variants.get(usize::from(variant))) else { continue };
        let naps = || (0..).zip(&variant.steps).filter(|(_, step)| step.nap.lasts > 0 || step.nap.until > 0);
        world.hit_if(naps().any(|(step, _)| is_called(step)), Fault::Slept);
        let is_woken = |step: u8| !is_called(step) && variant.steps[usize::from(step)].after.is_some();
        let is_compensated = end.standing == Standing::Compensated;
        world.hit_if(is_compensated && naps().any(|(step, _)| is_woken(step)), Fault::Woken);
    }
}
