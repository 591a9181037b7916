//! Ways to damage a sound ledger, each with the guarantee that it breaks.

use saga_testkit::checker::{Answer, Guarantee, Kind, Ledger, Left, Op, Recorded, Standing, StepPlan, What};
use saga_testkit::sim::Random;

/// One kind of damage. It answers nothing where the ledger has no place for it.
pub(crate) struct Damage {
    pub(crate) name: &'static str,
    pub(crate) breaks: Guarantee,
    pub(crate) apply: fn(&mut Ledger, &mut Random) -> Option<()>,
}

macro_rules! damages {
    ($($breaks:ident $name:ident,)*) => {
        pub(crate) const ALL: &[Damage] = &[
            $(Damage { name: stringify!($name), breaks: Guarantee::$breaks, apply: $name },)*
        ];
    };
}

damages! {
    G1 write_without_record,
    G1 record_without_write,
    G1 output_of_another_attempt_recorded,
    G1 completed_without_a_write,
    G2 transaction_committed_twice,
    G2 write_out_of_nothing,
    G3 key_changes_between_attempts,
    G3 completed_without_a_call,
    G3 effect_taken_twice_outside,
    G3 output_recorded_that_nobody_returned,
    G3 step_reads_another_output,
    G4 message_lost,
    G4 message_of_a_rolled_back_attempt,
    G4 message_out_of_nothing,
    G4 message_under_two_ids,
    G4 outbox_not_empty,
    G5 undo_missing,
    G5 undo_invented,
    G5 undo_of_a_completed_saga,
    G5 undos_in_the_wrong_order,
    G5 undo_with_a_foreign_output,
    G5 undo_without_the_output_it_takes,
    G5 done_after_the_undo,
    G5 done_after_it_was_barred,
    G5 compensated_without_a_cause,
    G5 steps_out_of_order,
    G5 saga_left_unfinished,
    G5 saga_left_stuck,
    G5 stuck_without_a_cause,
    G5 pivot_done_and_compensated,
    G6 started_saga_is_absent,
    G6 second_payload_accepted,
    G6 second_payload_runs,
    G6 own_payload_refused,
    G6 two_starts_made_it,
    G6 stranger_stored,
    G7 outcome_changes,
    G7 older_epoch_commits,
    G8 called_without_end,
    G8 work_left_behind,
    G9 events_swapped,
    G9 events_under_two_ordering_keys,
    G10 engine_panicked,
    G10 work_after_shutdown,
    G11 saga_forgotten,
    G12 message_of_another_tenant,
    G12 key_shared_by_tenants,
    G12 output_of_another_tenant,
    G12 refused_because_of_another_tenant,
}

/// A random place whose entry passes.
fn place(ledger: &Ledger, random: &mut Random, passes: impl Fn(&Ledger, &What) -> bool) -> Option<usize> {
    let places: Vec<usize> = (0..ledger.entries.len()).filter(|at| passes(ledger, &ledger.entries[*at].what)).collect();
    (!places.is_empty()).then(|| *random.pick(&places))
}

/// What a call is: its saga, its step and its direction.
fn of(ledger: &Ledger, number: u64) -> Option<(usize, u8, Op)> {
    ledger.entries.iter().find_map(|entry| match entry.what {
        What::Entered { call, saga, step, op, .. } if call == number => Some((saga as usize, step, op)),
        _ => None,
    })
}

fn plan(ledger: &Ledger, saga: usize, step: u8) -> &StepPlan {
    &ledger.sagas[saga].variants[0].steps[usize::from(step)]
}

/// The first effect of a step.
fn effect(ledger: &Ledger, saga: usize, step: u8, op: Op) -> Option<usize> {
    ledger.entries.iter().position(|entry| match entry.what {
        What::Took { call } | What::Wrote { call } => of(ledger, call) == Some((saga, step, op)),
        _ => false,
    })
}

fn is_compensated(ledger: &Ledger, saga: usize) -> bool {
    ledger.finals[saga].standing == Standing::Compensated
}

fn insert(ledger: &mut Ledger, at: usize, what: What) {
    let mut entry = ledger.entries[at.min(ledger.entries.len() - 1)].clone();
    entry.what = what;
    ledger.entries.insert(at, entry);
}

fn write_without_record(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Wrote { .. }))?;
    let What::Wrote { call } = ledger.entries[at].what else { return None };
    let (saga, step, op) = of(ledger, call)?;
    ledger.finals[saga].records.retain(|record| (record.step, record.op) != (step, op));
    Some(())
}

fn record_without_write(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Wrote { .. }))?;
    ledger.entries.remove(at);
    Some(())
}

fn output_of_another_attempt_recorded(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(
        ledger,
        random,
        |ledger, what| matches!(what, What::Wrote { call } if of(ledger, *call).is_some_and(|step| step.2 == Op::Do)),
    )?;
    let What::Wrote { call } = ledger.entries[at].what else { return None };
    let (saga, step, _) = of(ledger, call)?;
    ledger.finals[saga].records.iter_mut().find(|record| record.step == step)?.call = Some(call + 1000);
    Some(())
}

fn completed_without(ledger: &mut Ledger, random: &mut Random, kind: Kind) -> Option<()> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Took { call } | What::Wrote { call } => of(ledger, *call).is_some_and(|(saga, step, op)| {
            op == Op::Do && plan(ledger, saga, step).kind == kind && !is_compensated(ledger, saga)
        }),
        _ => false,
    })?;
    let (What::Took { call } | What::Wrote { call }) = ledger.entries[at].what else { return None };
    let (saga, step, _) = of(ledger, call)?;
    ledger.finals[saga].records.retain(|record| record.step != step);
    ledger.entries.remove(at);
    Some(())
}

fn completed_without_a_write(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    completed_without(ledger, random, Kind::Transactional)
}

fn completed_without_a_call(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    completed_without(ledger, random, Kind::External)
}

fn transaction_committed_twice(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Wrote { .. }))?;
    let what = ledger.entries[at].what.clone();
    insert(ledger, at + 1, what);
    Some(())
}

fn write_out_of_nothing(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = random.below(ledger.entries.len() as u64) as usize;
    insert(ledger, at, What::Wrote { call: 1_000_000 });
    Some(())
}

fn key_changes_between_attempts(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let is_repeated = |ledger: &Ledger, key: &str| {
        let same = |what: &What| matches!(what, What::Called { key: other, .. } if other == key);
        ledger.entries.iter().filter(|entry| same(&entry.what)).count() > 1
    };
    let at =
        place(ledger, random, |ledger, what| matches!(what, What::Called { key, .. } if is_repeated(ledger, key)))?;
    let What::Called { key, .. } = &mut ledger.entries[at].what else { return None };
    key.push_str("-again");
    Some(())
}

fn effect_taken_twice_outside(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Took { .. }))?;
    let what = ledger.entries[at].what.clone();
    insert(ledger, at + 1, what);
    Some(())
}

fn output_recorded_that_nobody_returned(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Left { call, how: Left::Done } => of(ledger, *call)
            .is_some_and(|(saga, step, op)| op == Op::Do && plan(ledger, saga, step).kind == Kind::External),
        _ => false,
    })?;
    let What::Left { how, .. } = &mut ledger.entries[at].what else { return None };
    *how = Left::Failed;
    Some(())
}

fn step_reads_another_output(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { op: Op::Do, reads: Some(_), .. }))?;
    let What::Entered { reads, .. } = &mut ledger.entries[at].what else { return None };
    *reads = None;
    Some(())
}

fn message_lost(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Delivered { .. }))?;
    let What::Delivered { call: lost, nth: lost_nth, .. } = ledger.entries[at].what else { return None };
    ledger
        .entries
        .retain(|entry| !matches!(entry.what, What::Delivered { call, nth, .. } if (call, nth) == (lost, lost_nth)));
    Some(())
}

fn message_of_a_rolled_back_attempt(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Left { how: Left::Failed, .. }))?;
    let What::Left { call, .. } = ledger.entries[at].what else { return None };
    let (saga, _, op) = of(ledger, call)?;
    if op == Op::Undo {
        return None;
    }
    let (tenant, key) = (ledger.sagas[saga].tenant.clone(), ledger.sagas[saga].key.clone());
    insert(ledger, at + 1, What::Delivered { message: "ghost".to_owned(), tenant, key, call, nth: 0 });
    Some(())
}

fn message_out_of_nothing(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = random.below(ledger.entries.len() as u64) as usize;
    let (tenant, key) = (String::new(), "k2".to_owned());
    insert(ledger, at, What::Delivered { message: "ghost".to_owned(), tenant, key, call: 1_000_000, nth: 0 });
    Some(())
}

fn message_under_two_ids(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Delivered { .. }))?;
    let mut what = ledger.entries[at].what.clone();
    let What::Delivered { message, .. } = &mut what else { return None };
    message.push_str("-again");
    insert(ledger, at + 1, what);
    Some(())
}

fn outbox_not_empty(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.outbox = 1;
    Some(())
}

fn undo_missing(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, step) = undone_step(ledger, random)?;
    let numbers: Vec<u64> = calls(ledger, saga, step, Op::Undo);
    ledger.entries.retain(|entry| match &entry.what {
        What::Entered { call, .. }
        | What::Left { call, .. }
        | What::Called { call, .. }
        | What::Took { call }
        | What::Wrote { call }
        | What::Delivered { call, .. } => !numbers.contains(call),
        _ => true,
    });
    ledger.finals[saga].records.retain(|record| (record.step, record.op) != (step, Op::Undo));
    Some(())
}

fn calls(ledger: &Ledger, saga: usize, step: u8, op: Op) -> Vec<u64> {
    let numbers = ledger.entries.iter().filter_map(|entry| match entry.what {
        What::Entered { call, .. } if of(ledger, call) == Some((saga, step, op)) => Some(call),
        _ => None,
    });
    numbers.collect()
}

/// A step whose undo took effect.
fn undone_step(ledger: &Ledger, random: &mut Random) -> Option<(usize, u8)> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Took { call } | What::Wrote { call } => of(ledger, *call).is_some_and(|step| step.2 == Op::Undo),
        _ => false,
    })?;
    let (What::Took { call } | What::Wrote { call }) = ledger.entries[at].what else { return None };
    of(ledger, call).map(|(saga, step, _)| (saga, step))
}

/// A saga that was compensated at a step which never took effect, and that step.
fn failed_step(ledger: &Ledger, random: &mut Random) -> Option<(usize, u8)> {
    let failed = ledger.finals.iter().enumerate().filter_map(|(saga, end)| {
        let rejected = end.records.iter().find(|record| record.outcome == Recorded::NotDone)?;
        Some((saga, rejected.step))
    });
    let failed: Vec<_> = failed.collect();
    (!failed.is_empty()).then(|| *random.pick(&failed))
}

fn undo_invented(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, step) = failed_step(ledger, random)?;
    let last = calls(ledger, saga, step, Op::Do).pop()?;
    let at = ledger.entries.iter().position(|entry| matches!(entry.what, What::Left { call, .. } if call == last))?;
    if calls(ledger, saga, step, Op::Do).len() > 1 && plan(ledger, saga, step).kind == Kind::External {
        return None;
    }
    let invented =
        What::Entered { call: 1_000_000, saga: saga as u32, variant: 0, step, op: Op::Undo, fence: 1, reads: None };
    insert(ledger, at + 1, invented);
    Some(())
}

fn undo_of_a_completed_saga(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Took { call } | What::Wrote { call } => of(ledger, *call)
            .is_some_and(|(saga, step, _)| !is_compensated(ledger, saga) && plan(ledger, saga, step).undo.is_some()),
        _ => false,
    })?;
    let (What::Took { call: reads } | What::Wrote { call: reads }) = ledger.entries[at].what else { return None };
    let (saga, step, _) = of(ledger, reads)?;
    let (saga, reads) = (saga as u32, Some(reads));
    insert(ledger, at + 1, What::Entered { call: 1_000_000, saga, variant: 0, step, op: Op::Undo, fence: 1, reads });
    Some(())
}

fn undos_in_the_wrong_order(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, later) = undone_step(ledger, random)?;
    let earlier = (0..later).rev().find(|step| effect(ledger, saga, *step, Op::Undo).is_some())?;
    let is_of = |ledger: &Ledger, at: usize, step: u8| match ledger.entries[at].what {
        What::Entered { call, .. }
        | What::Left { call, .. }
        | What::Called { call, .. }
        | What::Took { call }
        | What::Wrote { call } => of(ledger, call) == Some((saga, step, Op::Undo)),
        _ => false,
    };
    let moved: Vec<usize> = (0..ledger.entries.len()).filter(|at| is_of(ledger, *at, earlier)).collect();
    let target = (0..ledger.entries.len()).find(|at| is_of(ledger, *at, later))?;
    let mut entries: Vec<_> = moved.iter().map(|at| ledger.entries[*at].clone()).collect();
    for at in moved.into_iter().rev() {
        ledger.entries.remove(at);
    }
    let tail = ledger.entries.split_off(target);
    ledger.entries.append(&mut entries);
    ledger.entries.extend(tail);
    Some(())
}

fn undo_with_a_foreign_output(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { op: Op::Undo, .. }))?;
    let What::Entered { reads, .. } = &mut ledger.entries[at].what else { return None };
    *reads = Some(1_000_000);
    Some(())
}

fn undo_without_the_output_it_takes(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Entered { op: Op::Undo, saga, step, .. } => {
            plan(ledger, *saga as usize, *step).undo.as_ref().is_some_and(|undo| !undo.takes_unknown)
        }
        _ => false,
    })?;
    let What::Entered { reads, .. } = &mut ledger.entries[at].what else { return None };
    *reads = None;
    Some(())
}

fn done_after_the_undo(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, step) = undone_step(ledger, random)?;
    let done = effect(ledger, saga, step, Op::Do)?;
    let undone = effect(ledger, saga, step, Op::Undo)?;
    let entry = ledger.entries.remove(done);
    ledger.entries.insert(undone, entry);
    Some(())
}

fn done_after_it_was_barred(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Barred { .. }))?;
    let What::Barred { call } = ledger.entries[at].what else { return None };
    let (saga, step, _) = of(ledger, call)?;
    let call = calls(ledger, saga, step, Op::Do).pop()?;
    insert(ledger, at + 1, What::Took { call });
    Some(())
}

fn compensated_without_a_cause(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (chosen, _) = failed_step(ledger, random)?;
    for at in 0..ledger.entries.len() {
        if let What::Left { call, .. } = ledger.entries[at].what
            && of(ledger, call).is_some_and(|(saga, ..)| saga == chosen)
        {
            ledger.entries[at].what = What::Left { call, how: Left::Done };
        }
    }
    Some(())
}

fn steps_out_of_order(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = random.below(ledger.sagas.len() as u64) as usize;
    let (first, second) = (effect(ledger, saga, 0, Op::Do)?, effect(ledger, saga, 1, Op::Do)?);
    let entry = ledger.entries.remove(first);
    ledger.entries.insert(second, entry);
    Some(())
}

fn saga_left_unfinished(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = random.below(ledger.sagas.len() as u64) as usize;
    ledger.finals[saga].standing = Standing::Unfinished;
    Some(())
}

fn saga_left_stuck(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = random.below(ledger.sagas.len() as u64) as usize;
    ledger.finals[saga].standing = Standing::Stuck;
    Some(())
}

fn stuck_without_a_cause(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::StartAnswered { .. }))?;
    let call = ledger.entries[..=at].iter().rev().find_map(|entry| match entry.what {
        What::StartCalled { saga, .. } => Some(saga),
        _ => None,
    });
    insert(ledger, at + 1, What::StuckSeen { saga: call? });
    let has_begun = ledger.entries[..at].iter().any(|entry| matches!(entry.what, What::Entered { .. }));
    (!has_begun).then_some(())
}

fn pivot_done_and_compensated(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, step) = undone_step(ledger, random)?;
    ledger.sagas[saga].variants[0].steps[usize::from(step)].is_pivot = true;
    Some(())
}

fn started_saga_is_absent(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = random.below(ledger.sagas.len() as u64) as usize;
    ledger.finals[saga].standing = Standing::Absent;
    Some(())
}

fn second_payload_accepted(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::StartAnswered { answer: Answer::Refused, .. }))?;
    let What::StartAnswered { answer, .. } = &mut ledger.entries[at].what else { return None };
    *answer = Answer::Started { is_new: Some(false) };
    Some(())
}

fn second_payload_runs(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { .. }))?;
    let What::Entered { variant, .. } = &mut ledger.entries[at].what else { return None };
    *variant = 1;
    Some(())
}

fn own_payload_refused(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| {
        matches!(what, What::StartAnswered { answer: Answer::Started { is_new: Some(false) }, .. })
    })?;
    let What::StartAnswered { answer, .. } = &mut ledger.entries[at].what else { return None };
    *answer = Answer::Refused;
    Some(())
}

fn two_starts_made_it(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| {
        matches!(what, What::StartAnswered { answer: Answer::Started { is_new: Some(false) }, .. })
    })?;
    let What::StartAnswered { answer, .. } = &mut ledger.entries[at].what else { return None };
    *answer = Answer::Started { is_new: Some(true) };
    Some(())
}

fn stranger_stored(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.strangers = 1;
    Some(())
}

fn outcome_changes(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::OutcomeSeen { .. }))?;
    let What::OutcomeSeen { standing, .. } = &mut ledger.entries[at].what else { return None };
    *standing = if *standing == Standing::Completed { Standing::Compensated } else { Standing::Completed };
    Some(())
}

fn older_epoch_commits(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Wrote { .. }))?;
    let What::Wrote { call: wrote } = ledger.entries[at].what else { return None };
    let younger = ledger.entries.iter().find_map(|entry| match &entry.what {
        What::Entered { call, saga, variant, step, op, fence, reads } if *call == wrote => Some(What::Entered {
            call: 1_000_000,
            saga: *saga,
            variant: *variant,
            step: *step,
            op: *op,
            fence: fence + 1,
            reads: *reads,
        }),
        _ => None,
    });
    insert(ledger, at, younger?);
    Some(())
}

fn called_without_end(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { .. }))?;
    for again in 0..10 {
        let mut what = ledger.entries[at].what.clone();
        let What::Entered { call, .. } = &mut what else { return None };
        *call = 1_000_000 + again;
        insert(ledger, at, what);
    }
    Some(())
}

fn work_left_behind(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.work_of_ended = 1;
    Some(())
}

fn events_swapped(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Delivered { .. }))?;
    let What::Delivered { call, key, tenant, .. } = ledger.entries[at].what.clone() else { return None };
    let later = ledger.entries.iter().enumerate().skip(at).find_map(|(later, entry)| match &entry.what {
        What::Delivered { call: other, key: other_key, tenant: other_tenant, .. } => {
            (*other != call && (other_key, other_tenant) == (&key, &tenant)).then_some(later)
        }
        _ => None,
    })?;
    // Every delivery of the first call goes behind the first delivery of the later one.
    let later = ledger.entries[later].clone();
    let (moved, mut kept): (Vec<_>, Vec<_>) = std::mem::take(&mut ledger.entries)
        .into_iter()
        .partition(|entry| matches!(entry.what, What::Delivered { call: other, .. } if other == call));
    let behind = kept.iter().position(|entry| *entry == later)? + 1;
    kept.splice(behind..behind, moved);
    ledger.entries = kept;
    Some(())
}

fn events_under_two_ordering_keys(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Delivered { .. }))?;
    let What::Delivered { call, .. } = ledger.entries[at].what.clone() else { return None };
    let saga = of(ledger, call)?.0;
    let others = ledger.entries.iter().filter(|entry| match entry.what {
        What::Delivered { call: other, .. } => other != call && of(ledger, other).is_some_and(|step| step.0 == saga),
        _ => false,
    });
    if others.count() == 0 {
        return None;
    }
    for entry in &mut ledger.entries {
        if let What::Delivered { call: other, key, .. } = &mut entry.what
            && *other == call
        {
            key.push_str("-other");
        }
    }
    Some(())
}

fn engine_panicked(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.panics.push("index out of bounds".to_owned());
    Some(())
}

fn work_after_shutdown(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { .. }))?;
    insert(ledger, at, What::ShutDown);
    Some(())
}

fn saga_forgotten(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.forgotten = 1;
    Some(())
}

fn message_of_another_tenant(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Delivered { .. }))?;
    let What::Delivered { tenant, .. } = &mut ledger.entries[at].what else { return None };
    "third".clone_into(tenant);
    Some(())
}

fn key_shared_by_tenants(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let mut called = [0, 0];
    for at in 0..ledger.entries.len() {
        let What::Called { call, .. } = ledger.entries[at].what else { continue };
        let (saga, ..) = of(ledger, call)?;
        if let Some(count) = called.get_mut(saga) {
            *count += 1;
            let What::Called { key, .. } = &mut ledger.entries[at].what else { return None };
            "twice:step".clone_into(key);
        }
    }
    called.iter().all(|count| *count > 0).then_some(())
}

fn output_of_another_tenant(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let foreign = calls(ledger, 1, 0, Op::Do).pop()?;
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { saga: 0, reads: Some(_), .. }))?;
    let What::Entered { reads, .. } = &mut ledger.entries[at].what else { return None };
    *reads = Some(foreign);
    Some(())
}

fn refused_because_of_another_tenant(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let mut own = None;
    for at in 0..ledger.entries.len() {
        match ledger.entries[at].what {
            What::StartCalled { call, saga: 1, variant: 0 } => own = Some(call),
            What::StartCalled { saga: 1, .. } => return None,
            What::StartAnswered { call, .. } if own == Some(call) => {
                ledger.entries[at].what = What::StartAnswered { call, answer: Answer::Refused };
            }
            _ => {}
        }
    }
    own.map(|_| ())
}
