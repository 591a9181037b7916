//! Damages of G13.

#![expect(clippy::unnecessary_wraps, reason = "every damage has one signature, for the table")]

use saga_testkit::checker::{Age, Ledger, Standing, What};
use saga_testkit::sim::Random;

use super::tools::{insert, of, place, plan};

/// A saga of the ledger is deleted, with nothing before.
fn deleted(saga: u32) -> What {
    What::Purged {
        service: 0,
        saga,
        row: 0,
        revision: 1,
        age: Age::Deleted,
        was_tombstone: false,
        standing: Standing::Completed,
        is_whole: true,
    }
}

fn any_saga(ledger: &Ledger, random: &mut Random) -> u32 {
    random.below(ledger.sagas.len() as u64) as u32
}

fn at_the_end(ledger: &mut Ledger, what: What) -> Option<()> {
    let end = ledger.entries.len();
    insert(ledger, end, what);
    Some(())
}

pub(super) fn purged_unfinished(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let mut purged = deleted(any_saga(ledger, random));
    if let What::Purged { standing, .. } = &mut purged {
        *standing = *random.pick(&[Standing::Unfinished, Standing::Stuck]);
    }
    at_the_end(ledger, purged)
}

pub(super) fn purged_in_part(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let mut purged = deleted(any_saga(ledger, random));
    if let What::Purged { is_whole, .. } = &mut purged {
        *is_whole = false;
    }
    at_the_end(ledger, purged)
}

/// It was archived as it had been before its last decision.
pub(super) fn purged_unarchived(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = any_saga(ledger, random);
    ledger.is_archived = true;
    at_the_end(ledger, What::Archived { service: 0, saga, row: 0, revision: 0 })?;
    at_the_end(ledger, deleted(saga))
}

pub(super) fn archived_behind_its_purge(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = any_saga(ledger, random);
    ledger.is_archived = true;
    at_the_end(ledger, deleted(saga))?;
    at_the_end(ledger, What::Archived { service: 0, saga, row: 0, revision: 1 })
}

pub(super) fn purged_though_exempted(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = any_saga(ledger, random);
    at_the_end(ledger, What::Exempted { saga })?;
    at_the_end(ledger, deleted(saga))
}

/// A step of the saga's own service takes effect behind the purge.
pub(super) fn done_behind_the_purge(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let is_own = |ledger: &Ledger, call: u64| {
        of(ledger, call).is_some_and(|(saga, step, _)| plan(ledger, saga, step).host.is_none())
    };
    let at = place(ledger, random, |ledger, what| match what {
        What::Took { call } | What::Wrote { call } => is_own(ledger, *call),
        _ => false,
    })?;
    let (What::Took { call } | What::Wrote { call }) = ledger.entries[at].what else { return None };
    let (saga, ..) = of(ledger, call)?;
    insert(ledger, at, deleted(saga as u32));
    Some(())
}

/// A host has purged its record, and begins the step again.
pub(super) fn called_behind_the_purge(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Entered { saga, step, .. } => plan(ledger, *saga as usize, *step).host.is_some(),
        _ => false,
    })?;
    let What::Entered { saga, step, .. } = ledger.entries[at].what else { return None };
    let host = plan(ledger, saga as usize, step).host?;
    let mut purged = deleted(saga);
    if let What::Purged { service, row, .. } = &mut purged {
        (*service, *row) = (host, step + 1);
    }
    insert(ledger, at, purged);
    Some(())
}

pub(super) fn hosted_step_kept(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.hosted_left = 1;
    Some(())
}

/// The first two sagas that have one key: the second runs, and the first was never deleted.
pub(super) fn key_used_again_too_early(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let runs = |saga: usize| {
        let is_its = |what: &What| matches!(what, What::Entered { saga: of, .. } if *of as usize == saga);
        ledger.entries.iter().any(|entry| is_its(&entry.what))
    };
    if !runs(2) {
        return None;
    }
    ledger.sagas[2].reborn_of = Some(0);
    Some(())
}
