//! What branches of groups did beside each other, as the ledger shows it.

use std::collections::BTreeMap;

use crate::checker::{Ledger, Left, Op, RecordSeen, Recorded, StepPlan, What, is_behind};
use crate::sim::world::{Fault, World};

/// A call of a step function: when it began and ended.
struct Span {
    step: u8,
    op: Op,
    entered: usize,
    left: Option<usize>,
    took: Option<usize>,
    is_rejected: bool,
}

/// Notes which branches met.
pub(crate) fn note_branches(world: &World, ledger: &Ledger) {
    for chosen in ledger.finals.iter().flat_map(|end| &end.chosen) {
        world.hit(if chosen.arm.is_some() { Fault::ArmTaken } else { Fault::NoArmTaken });
    }
    for (plan, end) in ledger.sagas.iter().zip(&ledger.finals) {
        let variant = end.variant.and_then(|variant| plan.variants.get(usize::from(variant)));
        let is_sub = |record: &&RecordSeen| {
            let step = variant.and_then(|variant| variant.steps.get(usize::from(record.step)));
            step.is_some_and(|step| step.is_sub) && record.outcome == Recorded::Done
        };
        let has = |op: Op| end.records.iter().filter(is_sub).any(|record| record.op == op);
        world.hit_if(has(Op::Do) && !has(Op::Undo), Fault::SubDone);
        world.hit_if(has(Op::Undo), Fault::SubUndone);
    }
    for (saga, plan) in (0..).zip(&ledger.sagas) {
        let variant = ledger.finals.get(saga as usize).and_then(|end| end.variant);
        let Some(variant) = variant.and_then(|variant| plan.variants.get(usize::from(variant))) else { continue };
        if variant.steps.iter().all(|step| step.after.is_none()) {
            continue;
        }
        note_saga(world, &variant.steps, &spans(ledger, saga));
    }
}

fn note_saga(world: &World, steps: &[StepPlan], spans: &[Span]) {
    let are_apart = |one: u8, other: u8| one != other && !is_behind(steps, one, other) && !is_behind(steps, other, one);
    let at_once = |one: &Span, other: &Span| {
        let (first, second) = if one.entered < other.entered { (one, other) } else { (other, one) };
        are_apart(one.step, other.step) && first.left.is_some_and(|left| left > second.entered)
    };
    let has_pair = |op: Op, holds: &dyn Fn(&Span, &Span) -> bool| {
        let of_op = || spans.iter().filter(|span| span.op == op);
        of_op().any(|one| of_op().any(|other| holds(one, other)))
    };
    world.hit_if(has_pair(Op::Do, &at_once), Fault::BranchesAtOnce);
    world.hit_if(has_pair(Op::Undo, &at_once), Fault::BranchesUndoneAtOnce);
    let both_failed =
        |one: &Span, other: &Span| one.is_rejected && other.is_rejected && are_apart(one.step, other.step);
    world.hit_if(has_pair(Op::Do, &both_failed), Fault::BranchesFailed);
    let joined = |(place, step): (u8, &StepPlan)| {
        let took = |step: u8| spans.iter().any(|span| span.step == step && span.op == Op::Do && span.took.is_some());
        step.after
            .as_ref()
            .is_some_and(|after| after.len() > 1 && after.iter().all(|before| took(*before)) && took(place))
    };
    world.hit_if((0..).zip(steps).any(joined), Fault::BranchesJoined);
}

fn spans(ledger: &Ledger, of: u32) -> Vec<Span> {
    let mut spans: BTreeMap<u64, Span> = BTreeMap::new();
    for (at, entry) in ledger.entries.iter().enumerate() {
        match &entry.what {
            What::Entered { call, saga, step, op, .. } if *saga == of => {
                let span = Span { step: *step, op: *op, entered: at, left: None, took: None, is_rejected: false };
                spans.insert(*call, span);
            }
            What::Left { call, how } => {
                if let Some(span) = spans.get_mut(call) {
                    span.left = Some(at);
                    span.is_rejected = matches!(how, Left::Rejected);
                }
            }
            What::Wrote { call } | What::Took { call } => {
                if let Some(span) = spans.get_mut(call) {
                    span.took = Some(at);
                }
            }
            _ => {}
        }
    }
    spans.into_values().collect()
}
