//! Damages of G6 and G7: starts and decisions.

#![expect(clippy::unnecessary_wraps, reason = "every damage has one signature, for the table")]

use saga_testkit::checker::{Act, Answer, Ledger, Standing, What};
use saga_testkit::sim::Random;

use super::tools::{insert, place};

pub(super) fn started_saga_is_absent(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = random.below(ledger.sagas.len() as u64) as usize;
    ledger.finals[saga].standing = Standing::Absent;
    Some(())
}

pub(super) fn second_payload_accepted(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::StartAnswered { answer: Answer::Refused, .. }))?;
    let What::StartAnswered { answer, .. } = &mut ledger.entries[at].what else { return None };
    *answer = Answer::Started { is_new: Some(false) };
    Some(())
}

pub(super) fn second_payload_runs(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { .. }))?;
    let What::Entered { variant, .. } = &mut ledger.entries[at].what else { return None };
    *variant = 1;
    Some(())
}

pub(super) fn own_payload_refused(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| {
        matches!(what, What::StartAnswered { answer: Answer::Started { is_new: Some(false) }, .. })
    })?;
    let What::StartAnswered { answer, .. } = &mut ledger.entries[at].what else { return None };
    *answer = Answer::Refused;
    Some(())
}

pub(super) fn two_starts_made_it(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| {
        matches!(what, What::StartAnswered { answer: Answer::Started { is_new: Some(false) }, .. })
    })?;
    let What::StartAnswered { answer, .. } = &mut ledger.entries[at].what else { return None };
    *answer = Answer::Started { is_new: Some(true) };
    Some(())
}

pub(super) fn stranger_stored(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.strangers = 1;
    Some(())
}

pub(super) fn outcome_changes(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::OutcomeSeen { .. }))?;
    let What::OutcomeSeen { standing, .. } = &mut ledger.entries[at].what else { return None };
    *standing = if *standing == Standing::Completed { Standing::Compensated } else { Standing::Completed };
    Some(())
}

pub(super) fn two_acts_on_one_revision(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = random.below(ledger.sagas.len() as u64) as u32;
    for call in [1_000_000, 1_000_001] {
        insert(ledger, 0, What::ActAnswered { call, is_done: true });
        insert(ledger, 0, What::AuditRecord { saga, row: 0, act: Act::Retry, call, revision: 7 });
    }
    Some(())
}

pub(super) fn older_epoch_commits(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Wrote { .. }))?;
    let What::Wrote { call: wrote } = ledger.entries[at].what else { return None };
    let is_it = |what: &What| matches!(what, What::Entered { call, .. } if *call == wrote);
    let mut younger = ledger.entries.iter().map(|entry| &entry.what).find(|what| is_it(what))?.clone();
    if let What::Entered { call, fence, .. } = &mut younger {
        (*call, *fence) = (1_000_000, *fence + 1);
    }
    insert(ledger, at, younger);
    Some(())
}
