//! Step transactions with claims of several tenants, which have the same keys and steps.

use saga_core::store::{Changes, HandlerVerdict, RecordedOutcome, SagaRow, Status, Store};

use super::starting::{self, unborn_of};
use super::transaction::{claims, done, plays, transact};
use crate::check::{Failed, Outcome, ensure_eq};
use crate::fixture::{Begun, Bench, OTHER, Play, STEP, tenant};
use crate::harness::StoreHarness;

const KEY: &str = "k-1";
const TENANTS: [&str; 3] = ["", "acme", "blue"];

/// A saga of the same key in each of three tenants, whose commands are claimed.
async fn one_each<H: StoreHarness>(bench: &Bench<H>) -> Result<Vec<Begun>, Failed> {
    let mut begun = Vec::new();
    for name in TENANTS {
        begun.push(bench.start_of(&tenant(name), KEY).await?);
    }
    for claimed in bench.claim(bench.lease().await?, 10).await?.work {
        if let Some(begun) = begun.iter_mut().find(|begun| begun.id == claimed.saga) {
            begun.work = claimed.work;
        }
    }
    Ok(begun)
}

pub(crate) async fn claims_of_several_tenants_commit_together<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = one_each(&bench).await?;
    let plays = vec![Play::keep("a", 1), Play::then("b", 2, HandlerVerdict::RollBack), Play::keep("c", 3)];
    let mut changes = done(&begun);
    // The step of the second saga errs and is tried again.
    let again = vec![begun[1].postponed(std::time::Duration::ZERO)];
    changes[1] = Changes { postponed: again, ..Changes::default() };
    let seen = transact(&bench, claims(&begun), plays, changes).await?;
    ensure_eq!((seen.granted, seen.ran), (vec![true; 3], vec![0, 1, 2]), "the claims, and the handlers that ran");
    let bench = bench.reopen().await?;
    for (row, expected) in [("a", Some(1)), ("b", None), ("c", Some(3))] {
        ensure_eq!(bench.business(row).await, expected, "what the handlers wrote to {row}");
    }
    for (begun, recorded) in begun.iter().zip([true, false, true]) {
        let outcome = recorded.then_some(RecordedOutcome::Done);
        ensure_eq!(bench.outcome_of(begun, STEP).await?, outcome, "the record of {:?}", begun.tenant);
        let saga = bench.saga(begun).await?;
        let expected = (begun.id, if recorded { 2 } else { 1 });
        ensure_eq!((saga.id, saga.version), expected, "the saga of {:?}", begun.tenant);
    }
    Ok(())
}

pub(crate) async fn a_claim_is_judged_by_the_records_of_its_own_tenant<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = one_each(&bench).await?;
    let records = vec![begun[1].record(STEP, RecordedOutcome::Cancelled)];
    bench.apply(Changes { records, ..Changes::default() }).await?;
    // Wherever the tenant with the record stands among the claims.
    for at in 0..TENANTS.len() {
        let mut order = vec![&begun[0], &begun[2]];
        order.insert(at, &begun[1]);
        let claims = order.iter().map(|begun| begun.claim()).collect();
        let plays = vec![Play::then("a", 1, HandlerVerdict::RollBack); TENANTS.len()];
        let seen = transact(&bench, claims, plays, Vec::new()).await?;
        let expected: Vec<bool> = (0..TENANTS.len()).map(|index| index != at).collect();
        ensure_eq!(seen.granted, expected, "the claims, with that of a recorded step at {at}");
    }
    let rest = vec![begun[0].clone(), begun[2].clone()];
    transact(&bench, claims(&rest), vec![Play::keep("a", 1), Play::keep("c", 3)], done(&rest)).await?;
    let outcomes = [RecordedOutcome::Done, RecordedOutcome::Cancelled, RecordedOutcome::Done];
    for (begun, outcome) in begun.iter().zip(outcomes) {
        ensure_eq!(bench.outcome_of(begun, STEP).await?, Some(outcome), "the record of {:?}", begun.tenant);
    }
    Ok(())
}

pub(crate) async fn a_moved_saga_brings_the_records_of_its_own_tenant<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = one_each(&bench).await?;
    for (begun, outcome) in begun.iter().zip([RecordedOutcome::Done, RecordedOutcome::Skipped, RecordedOutcome::Done]) {
        let records = vec![begun.record(OTHER, outcome)];
        bench.apply(Changes { records, ..Changes::default() }).await?;
    }
    bench.advance(&begun[1], 1, Status::Running).await?;
    let again = begun.clone();
    let script = bench.script(plays(), done(&begun)).again(move |moved: Vec<SagaRow>| {
        let version = |begun: &Begun| moved.iter().find(|row| row.id == begun.id).map_or(1, |row| row.version);
        again.iter().map(|begun| begun.done(version(begun))).collect()
    });
    let seen = script.seen();
    bench.store.transact(claims(&begun), Box::new(script)).await?;
    let told: Vec<RecordedOutcome> = seen().recorded.into_iter().map(|record| record.outcome).collect();
    ensure_eq!(told, [RecordedOutcome::Skipped], "what is recorded of the saga that had moved");
    for (begun, version) in begun.iter().zip([2, 3, 2]) {
        ensure_eq!(bench.saga(begun).await?.version, version, "the version of {:?}", begun.tenant);
    }
    Ok(())
}

pub(crate) async fn one_key_starts_in_several_tenants<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let known = bench.start_of(&tenant(TENANTS[1]), KEY).await?;
    let (mut begun, mut claims) = (Vec::new(), Vec::new());
    for name in TENANTS {
        let (unborn, _, claim) = unborn_of(&bench, &tenant(name), KEY).await?;
        begun.push(unborn);
        claims.push(claim);
    }
    let changes = [&begun[0], &begun[2]].map(starting::done).to_vec();
    let seen = transact(&bench, claims, plays(), changes).await?;
    ensure_eq!(seen.granted, [true, false, true], "the claims of a new key, where one tenant has it");
    ensure_eq!(bench.saga(&known).await?.version, 1, "the version of the saga that has the key");
    for begun in [&begun[0], &begun[2]] {
        ensure_eq!(bench.saga(begun).await?.id, begun.id, "the saga of {:?}", begun.tenant);
        ensure_eq!(bench.outcome_of(begun, STEP).await?, Some(RecordedOutcome::Done), "its record");
    }
    Ok(())
}
