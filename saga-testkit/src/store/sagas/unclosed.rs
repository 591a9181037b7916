//! Hosted steps that no message has closed.

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{DefinitionId, MemberId, Members, Purge, Status, StoreErrorKind, Unclosed, UnclosedFilter};

use super::purge::{at_once, end, ended, purge, started, tombstone};
use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, HOUR, definition, name, tenant};
use crate::harness::StoreHarness;

fn filter(interval: Duration, limit: usize) -> UnclosedFilter {
    UnclosedFilter { definitions: vec![definition()], interval, limit }
}

/// A new member that has the lease, and its epoch.
async fn lease<H: StoreHarness>(bench: &Bench<H>) -> Result<(MemberId, u64), Failed> {
    let member = bench.member().await?;
    let epoch = bench.store.lease_maintenance(member, HOUR).await?;
    let epoch = epoch.ok_or_else(|| Failed("no member has the lease, and it is not given".into()))?;
    Ok((member, epoch))
}

fn keys(part: &Unclosed) -> Vec<(String, String)> {
    part.steps.iter().map(|step| (step.tenant.to_string(), step.key.to_string())).collect()
}

pub(crate) async fn unclosed_steps_are_listed_part_by_part<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let first = ended(&bench, "k-1>charge", None).await?;
    ended(&bench, "k-2>charge", Some(at_once())).await?;
    started(&bench, &tenant("acme"), "k-3>charge").await?;
    let emptied = ended(&bench, "k-4>charge", Some(tombstone())).await?;
    let (member, epoch_before) = lease(&bench).await?;
    let due = bench.store.expired(100).await?.into_iter().filter(|due| due.id == emptied.id).collect::<Vec<_>>();
    ensure_eq!(bench.store.purge(epoch_before, &due, HOUR).await?.tombstones, [emptied.id], "the tombstone");
    bench.store.set_expiry(&emptied.tenant, &emptied.key, None).await?;
    let last = started(&bench, &Tenant::default(), "k-5>charge").await?;
    bench.apply(end(&last, None)).await?;

    let part = bench.store.unclosed(epoch_before, &filter(Duration::ZERO, 2)).await?;
    ensure_eq!((keys(&part), part.more), (vec![("acme".into(), "k-1>charge".into())], true), "the first part");
    let state = bench.whole(&first).await?.saga.state;
    ensure_eq!((&part.steps[0].definition, &part.steps[0].state), (&definition(), &state), "the step");

    // Another process goes on where this one stopped.
    bench.store.leave(member).await?;
    let bench = bench.reopen().await?;
    let (_, epoch) = lease(&bench).await?;
    ensure!(epoch > epoch_before, "the epoch {epoch} follows the epoch {epoch_before}");
    let refused = bench.store.unclosed(epoch_before, &filter(Duration::ZERO, 2)).await;
    let refused = refused.err().map(|error| error.kind());
    ensure_eq!(refused, Some(StoreErrorKind::Conflict), "a part under an older epoch");
    let part = bench.store.unclosed(epoch, &filter(Duration::ZERO, 2)).await?;
    ensure_eq!((keys(&part), part.more), (Vec::new(), true), "the second part");
    let part = bench.store.unclosed(epoch, &filter(Duration::ZERO, 2)).await?;
    ensure_eq!((keys(&part), part.more), (vec![(String::new(), "k-5>charge".into())], false), "the last part");

    let other = DefinitionId { name: "refunds".into(), version: 1 };
    let of_other = UnclosedFilter { definitions: vec![other], ..filter(Duration::ZERO, 100) };
    ensure_eq!(bench.store.unclosed(epoch, &of_other).await?, Unclosed::default(), "the steps of another definition");
    let all = bench.store.unclosed(epoch, &filter(Duration::ZERO, 100)).await?;
    ensure_eq!((all.steps.len(), all.more), (2, false), "how many the next walk finds");
    Ok(())
}

pub(crate) async fn a_walk_begins_again_after_a_pause<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    ended(&bench, "k-1>charge", None).await?;
    let next = async |count: usize, what: &str| -> Outcome {
        let (member, epoch) = lease(&bench).await?;
        let part = bench.store.unclosed(epoch, &filter(HOUR * 3, 100)).await?;
        bench.store.leave(member).await?;
        ensure_eq!((part.steps.len(), part.more), (count, false), "how many steps are listed {what}");
        Ok(())
    };
    next(0, "that ended just now").await?;
    bench.pass(HOUR * 2).await;
    next(0, "before their time").await?;
    bench.pass(HOUR * 2).await;
    next(1, "when it has come").await?;
    next(0, "just after a walk").await?;
    bench.pass(HOUR * 2).await;
    next(0, "too soon after a walk").await?;
    bench.pass(HOUR * 2).await;
    next(1, "a while after a walk").await?;
    Ok(())
}

pub(crate) async fn known_sagas_are_those_of_the_tenant<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    ended(&bench, "k-1", Some(tombstone())).await?;
    purge(&bench).await?;
    let running = bench.start_of(&tenant("acme"), "k-2").await?;
    started(&bench, &tenant("acme"), "k-2>pay").await?;
    bench.start_of(&Tenant::default(), "k-3").await?;
    bench.advance(&running, 1, Status::Running).await?;
    let asked = ["k-1", "k-2", "k-2", "k-3", "k-4"].map(name);
    let known = bench.store.known(&tenant("acme"), &asked).await?;
    let mut known: Vec<_> = known.iter().map(|saga| (saga.key.as_str(), saga.is_tombstone)).collect();
    known.sort_unstable();
    ensure_eq!(known, [("k-1", true), ("k-2", false)], "the sagas that are known");
    Ok(())
}
