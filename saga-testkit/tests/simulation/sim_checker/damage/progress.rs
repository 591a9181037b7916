//! Damages of G3, G7 and G12: what calls are told of how far those before them were.

use saga_testkit::checker::{Ledger, What};
use saga_testkit::sim::Random;

use super::tools::{called_anew, entered, insert, of, place};

const ADDED: u64 = 1_000_000;

/// A call that was told something, from the `nth` of its key on.
fn told(ledger: &Ledger, random: &mut Random, nth: u32) -> Option<usize> {
    place(ledger, random, |_, what| matches!(what, What::Told { attempt, report: Some(_), .. } if *attempt >= nth))
}

fn tell(ledger: &mut Ledger, at: usize, told: Option<u64>) -> Option<()> {
    let What::Told { report, .. } = &mut ledger.entries[at].what else { return None };
    *report = told;
    Some(())
}

/// The call that made a report, and its place.
fn reporter(ledger: &Ledger, report: u64) -> Option<(usize, u64)> {
    ledger.entries.iter().enumerate().find_map(|(at, entry)| match entry.what {
        What::Reported { call, report: made } if made == report => Some((at, call)),
        _ => None,
    })
}

pub(super) fn told_what_nobody_reported(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = told(ledger, random, 1)?;
    tell(ledger, at, Some(ADDED))
}

/// The first attempt reports once more than the second one is told.
pub(super) fn last_report_forgotten(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Told { attempt: 2, report: Some(_), .. }))?;
    let What::Told { report: Some(report), .. } = ledger.entries[at].what else { return None };
    let (made, call) = reporter(ledger, report)?;
    insert(ledger, made + 1, What::Reported { call, report: ADDED });
    Some(())
}

/// The third attempt is told what the first one reports when the second has begun.
pub(super) fn told_what_an_older_call_reports(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Told { attempt: 3, .. }))?;
    let What::Told { call, .. } = ledger.entries[at].what else { return None };
    let first = *super::tools::calls(ledger, of(ledger, call)?.0, of(ledger, call)?.1, of(ledger, call)?.2).first()?;
    tell(ledger, at, Some(ADDED))?;
    insert(ledger, at, What::Reported { call: first, report: ADDED });
    Some(())
}

pub(super) fn told_nothing_any_more(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = told(ledger, random, 3)?;
    let What::Told { call, .. } = ledger.entries[at].what else { return None };
    let (saga, step, op) = of(ledger, call)?;
    let calls = super::tools::calls(ledger, saga, step, op);
    let before = *calls.iter().rev().find(|before| **before < call)?;
    // Where the call before it was told nothing either, there was nothing to forget.
    ledger
        .entries
        .iter()
        .find(|entry| matches!(entry.what, What::Told { call, report: Some(_), .. } if call == before))?;
    tell(ledger, at, None)
}

pub(super) fn told_what_another_step_reported(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = told(ledger, random, 2)?;
    let What::Told { call, .. } = ledger.entries[at].what else { return None };
    let own = of(ledger, call)?;
    let of_another = place(
        ledger,
        random,
        |ledger, what| matches!(what, What::Reported { call, .. } if of(ledger, *call).is_some_and(|other| other != own)),
    )?;
    let What::Reported { report, .. } = ledger.entries[of_another].what else { return None };
    tell(ledger, at, Some(report))
}

/// A call begins behind one that began under a newer claim.
pub(super) fn begun_under_an_older_claim(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Told { .. }))?;
    let What::Told { call, .. } = ledger.entries[at].what else { return None };
    let begun = entered(ledger, call)?;
    called_anew(ledger, call, 5, begun)
}
