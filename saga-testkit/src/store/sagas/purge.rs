//! Purging ended sagas.

use std::time::Duration;

use saga_core::key::{Key, Tenant};
use saga_core::store::{
    AuditFilter, Changes, Condition, ExpiredSaga, Expiry, HistoryEntry, HistoryKind, Members, NewSaga, NextAge, Purge,
    Purged, RecordedOutcome, Records, SagaFilter, SagaId, SagaRow, Sagas, Started, Status, StepId, StoreErrorKind,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, HOUR, STEP, tenant};
use crate::harness::StoreHarness;

pub(in crate::store) const NONE: [SagaId; 0] = [];

/// How long a saga is kept whose time is over when it ends.
pub(in crate::store) fn at_once() -> Expiry {
    Expiry::deleted_in(Duration::ZERO)
}

/// How long a saga is kept that is a tombstone as soon as it ends.
pub(in crate::store) fn tombstone() -> Expiry {
    Expiry { tombstone_in: Duration::ZERO, delete_in: HOUR, hosts: vec!["payments".into(), "stock".into()] }
}

/// What the step of a saga writes, with which it ends.
pub(in crate::store) fn end(begun: &Begun, expiry: Option<Expiry>) -> Changes {
    let entry = |kind, detail: &str| HistoryEntry {
        saga: begun.id,
        step: None,
        kind,
        attempt: 0,
        detail: format!("{detail} {}", begun.key),
    };
    let mut advance = begun.advance(1, Status::Completed);
    advance.expiry = expiry.map(Box::new);
    Changes {
        saga: Some(advance),
        finished: vec![(begun.work, Condition::Held)],
        records: vec![begun.record(STEP, RecordedOutcome::Done)],
        history: vec![entry(HistoryKind::Stuck, "stuck"), entry(HistoryKind::Operator, "operator")],
        ..Changes::default()
    }
}

/// A saga of the tenant `acme` that has ended.
pub(in crate::store) async fn ended<H: StoreHarness>(
    bench: &Bench<H>,
    key: &str,
    expiry: Option<Expiry>,
) -> Result<Begun, Failed> {
    let begun = started(bench, &tenant("acme"), key).await?;
    bench.apply(end(&begun, expiry)).await?;
    Ok(begun)
}

/// A started saga, which may be a step of another one.
pub(in crate::store) async fn started<H: StoreHarness>(
    bench: &Bench<H>,
    tenant: &Tenant,
    key: &str,
) -> Result<Begun, Failed> {
    let mut saga = bench.new_saga(tenant, "k").await?;
    saga.key = Key::from_stored(key).map_err(|error| Failed(error.to_string()))?;
    for command in &mut saga.commands {
        command.key = saga.key.clone();
    }
    let begun = Begun::of(&saga, saga.commands[0].id);
    let started = bench.start_new(saga).await?;
    ensure!(matches!(started, Started::New), "the first start of {key} answered {started:?}");
    Ok(begun)
}

/// Purges what is due under a new lease.
pub(in crate::store) async fn purge<H: StoreHarness>(bench: &Bench<H>) -> Result<Purged, Failed> {
    let due = bench.store.expired(100).await?;
    purge_these(bench, &due).await
}

pub(in crate::store) async fn purge_these<H: StoreHarness>(
    bench: &Bench<H>,
    due: &[ExpiredSaga],
) -> Result<Purged, Failed> {
    purge_with(bench, due, HOUR).await
}

/// Purges these under a new lease, and tries those that are kept again after that interval.
pub(in crate::store) async fn purge_with<H: StoreHarness>(
    bench: &Bench<H>,
    due: &[ExpiredSaga],
    retry_interval: Duration,
) -> Result<Purged, Failed> {
    let member = bench.member().await?;
    let epoch = bench.store.lease_maintenance(member, HOUR).await?;
    let epoch = epoch.ok_or_else(|| Failed("no member has the lease, and it is not given".into()))?;
    let purged = bench.store.purge(epoch, due, retry_interval).await?;
    bench.store.leave(member).await?;
    Ok(purged)
}

pub(in crate::store) async fn due<H: StoreHarness>(bench: &Bench<H>) -> Result<Vec<SagaId>, Failed> {
    Ok(bench.store.expired(100).await?.iter().map(|saga| saga.id).collect())
}

pub(crate) async fn the_commit_that_ends_a_saga_dates_it<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let over = ended(&bench, "k-over", Some(tombstone())).await?;
    ended(&bench, "k-later", Some(Expiry::deleted_in(HOUR))).await?;
    ended(&bench, "k-kept", None).await?;
    let mut started = bench.new_saga(&tenant("acme"), "k-started").await?;
    (started.status, started.expiry) = (Status::Compensated, Some(Box::new(at_once())));
    started.commands.clear();
    bench.start_new(started.clone()).await?;
    let running = bench.start_of(&tenant("acme"), "k-running").await?;
    let mut advance = running.advance(1, Status::Running);
    advance.expiry = Some(Box::new(at_once()));
    bench.apply(Changes { saga: Some(advance), ..Changes::default() }).await?;
    let listed = bench.store.expired(100).await?;
    let expected = [
        ExpiredSaga {
            id: over.id,
            tenant: tenant("acme"),
            key: over.key.clone(),
            version: 2,
            next: NextAge::Tombstone,
            hosts: vec!["payments".into(), "stock".into()],
        },
        ExpiredSaga {
            id: started.id,
            tenant: tenant("acme"),
            key: started.key,
            version: 1,
            next: NextAge::Deleted,
            hosts: Vec::new(),
        },
    ];
    ensure_eq!(listed, expected, "the sagas whose time is over");
    bench.advance(&over, 2, Status::Running).await?;
    ensure_eq!(due(&bench).await?, [started.id], "what is due when one of them was reopened");
    bench.advance(&over, 3, Status::Completed).await?;
    let bench = bench.reopen().await?;
    ensure_eq!(due(&bench).await?, [started.id], "what is due when it ended again and is kept for ever");
    Ok(())
}

/// The time is counted from the end, however long the saga ran.
pub(crate) async fn a_long_saga_is_kept_as_long_as_a_short_one<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let long = bench.start_of(&tenant("acme"), "k-1").await?;
    bench.pass(HOUR * 3).await;
    bench.apply(end(&long, Some(Expiry::deleted_in(HOUR * 2)))).await?;
    ensure_eq!(due(&bench).await?, NONE, "what is due at the end");
    bench.pass(HOUR).await;
    ensure_eq!(due(&bench).await?, NONE, "what is due at half of its time");
    bench.pass(HOUR).await;
    ensure_eq!(due(&bench).await?, [long.id], "what is due when its time is over");
    Ok(())
}

pub(crate) async fn what_is_over_longest_comes_first<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let lease = bench.harness.timing().lease;
    let (mut ids, mut ends) = (Vec::new(), Vec::new());
    for (key, delete_in) in [("k-1", lease * 3), ("k-2", lease), ("k-3", Duration::ZERO)] {
        let begun = started(&bench, &tenant("acme"), key).await?;
        ids.push(begun.id);
        ends.push(end(&begun, Some(Expiry::deleted_in(delete_in))));
    }
    // In one call, so that no time passes between their ends.
    let applied = bench.store.record(ends).await?;
    ensure!(applied.iter().all(Result::is_ok), "the sagas could not end: {applied:?}");
    ids.reverse();
    bench.pass(lease * 4).await;
    let two: Vec<SagaId> = bench.store.expired(2).await?.iter().map(|saga| saga.id).collect();
    ensure_eq!(two, ids[..2], "the two that are over longest");
    ensure_eq!(due(&bench).await?, ids, "all of them");
    let counts = bench.store.count_expired(2).await?;
    ensure_eq!(counts.iter().map(|count| count.sagas).sum::<u64>(), 2, "how many of two are due");
    Ok(())
}

/// A saga with a sub-saga, both ended.
pub(in crate::store) async fn family<H: StoreHarness>(
    bench: &Bench<H>,
    expiry: Expiry,
) -> Result<(Begun, Begun), Failed> {
    let outer = ended(bench, "k-1", Some(expiry)).await?;
    let sub = ended(bench, "k-1>pay", None).await?;
    Ok((outer, sub))
}

pub(crate) async fn a_tombstone_keeps_who_it_was<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (outer, sub) = family(&bench, tombstone()).await?;
    let before = bench.saga(&outer).await?;
    let whole = bench.store.whole_sagas(&[outer.id]).await?;
    let keys: Vec<&str> = whole.iter().map(|saga| saga.saga.key.as_str()).collect();
    ensure_eq!(keys, ["k-1", "k-1>pay"], "the family");
    ensure_eq!((whole[1].records.len(), whole[1].history.len()), (1, 2), "what is known of the sub-saga");
    let counts = bench.store.count_expired(100).await?;
    let counts: Vec<_> = counts.iter().map(|count| (count.next, count.sagas, count.bytes)).collect();
    let bytes = (before.input.len() + before.state.len() + b"output".len()) as u64;
    ensure_eq!(counts, [(NextAge::Tombstone, 1, bytes)], "what is due");
    let expected = Purged { tombstones: vec![outer.id], ..Purged::default() };
    ensure_eq!(purge(&bench).await?, expected, "what was purged");
    let bench = bench.reopen().await?;
    let found = bench.whole(&outer).await?;
    let expected = SagaRow { input: Vec::new(), state: Vec::new(), ..before };
    ensure!(found.saga.is_tombstone(), "it is no tombstone: {:?}", found.saga);
    ensure_eq!(found.saga, expected, "the tombstone");
    ensure_eq!(bench.store.saga(&outer.tenant, &outer.key).await?, Some(expected), "the tombstone without its steps");
    ensure_eq!(found.records.len(), 0, "its records");
    let details: Vec<&str> = found.history.iter().map(|(_, entry)| &*entry.detail).collect();
    ensure_eq!(details, ["operator k-1", "operator k-1>pay"], "what is left of the history");
    nothing_is_left(&bench, &sub).await?;
    let acts = bench.store.audit_log(&AuditFilter { tenant: tenant("acme"), ..AuditFilter::default() }).await?;
    let acts: Vec<_> = acts.iter().map(|act| (act.key.as_str(), &*act.entry.detail)).collect();
    ensure_eq!(acts, [("k-1", "operator k-1>pay"), ("k-1", "operator k-1")], "the audit log");
    ensure_eq!(due(&bench).await?, NONE, "what is due after that");
    bench.store.set_expiry(&outer.tenant, &outer.key, Some(&at_once())).await?;
    let listed = bench.store.expired(100).await?;
    let listed: Vec<_> = listed.iter().map(|saga| (saga.id, saga.next, saga.hosts.len())).collect();
    ensure_eq!(listed, [(outer.id, NextAge::Deleted, 0)], "what becomes of the tombstone");
    ensure_eq!(purge(&bench).await?.deleted, [outer.id], "what was deleted");
    nothing_is_left(&bench, &outer).await
}

async fn nothing_is_left<H: StoreHarness>(bench: &Bench<H>, begun: &Begun) -> Outcome {
    let (store, key) = (&bench.store, &begun.key);
    ensure_eq!(store.saga(&begun.tenant, key).await?, None, "the saga {key}");
    ensure_eq!(store.sagas_by_id(&[begun.id]).await?.len(), 0, "the saga {key} by its id");
    ensure_eq!(store.progress(&[begun.id]).await?.len(), 0, "the progress of {key}");
    ensure_eq!(store.records_of(&begun.tenant, key).await?.len(), 0, "the records of {key}");
    let record = store.record_of(&begun.tenant, key, &StepId::doing(STEP)).await?;
    ensure_eq!(record, None, "a record of {key}");
    Ok(())
}

pub(crate) async fn nothing_is_left_of_a_deleted_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (outer, sub) = family(&bench, at_once()).await?;
    // Its key only begins in the same way.
    let neighbour = ended(&bench, "k-10", Some(Expiry::deleted_in(HOUR))).await?;
    let expected = Purged { deleted: vec![outer.id], ..Purged::default() };
    ensure_eq!(purge(&bench).await?, expected, "what was purged");
    let bench = bench.reopen().await?;
    nothing_is_left(&bench, &outer).await?;
    nothing_is_left(&bench, &sub).await?;
    let acts = bench.store.audit_log(&AuditFilter { tenant: tenant("acme"), ..AuditFilter::default() }).await?;
    let acts: Vec<&str> = acts.iter().map(|act| act.key.as_str()).collect();
    ensure_eq!(acts, ["k-10"], "the audit log");
    let left = bench.store.list(&SagaFilter { tenant: tenant("acme"), ..SagaFilter::default() }).await?;
    ensure_eq!(left.iter().map(|row| row.id).collect::<Vec<_>>(), [neighbour.id], "the sagas that are left");
    ensure_eq!(bench.whole(&neighbour).await?.records.len(), 1, "the records of another saga");
    ensure_eq!(purge(&bench).await?, Purged::default(), "what there is to purge after that");
    Ok(())
}

pub(crate) async fn what_changed_since_it_was_listed_is_left<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let reopened = ended(&bench, "k-1", Some(at_once())).await?;
    let again = ended(&bench, "k-2", Some(at_once())).await?;
    let kept = ended(&bench, "k-3", Some(at_once())).await?;
    let stripped = ended(&bench, "k-4", Some(at_once())).await?;
    let listed = bench.store.expired(100).await?;
    ensure_eq!(listed.len(), 4, "how many sagas are due");
    bench.advance(&reopened, 2, Status::Compensating).await?;
    bench.advance(&again, 2, Status::Running).await?;
    let mut advance = again.advance(3, Status::Completed);
    advance.expiry = Some(Box::new(at_once()));
    bench.apply(Changes { saga: Some(advance), ..Changes::default() }).await?;
    bench.store.set_expiry(&kept.tenant, &kept.key, Some(&Expiry::deleted_in(HOUR))).await?;
    bench.store.set_expiry(&stripped.tenant, &stripped.key, Some(&tombstone())).await?;
    ensure_eq!(purge_these(&bench, &listed).await?, Purged::default(), "what was purged of that");
    for begun in [reopened, again, kept, stripped] {
        let whole = bench.whole(&begun).await?;
        ensure_eq!((whole.records.len(), whole.saga.input.is_empty()), (1, false), "what is left of {}", begun.key);
    }
    Ok(())
}

pub(crate) async fn one_member_does_the_maintenance<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let saga = ended(&bench, "k-1", Some(at_once())).await?;
    let listed = bench.store.expired(100).await?;
    let (one, other) = (bench.member().await?, bench.member().await?);
    let lease =
        async |member, ttl| -> Result<Option<u64>, Failed> { Ok(bench.store.lease_maintenance(member, ttl).await?) };
    let first = lease(one, HOUR).await?.ok_or_else(|| Failed("the first lease was not given".into()))?;
    ensure_eq!(lease(one, HOUR).await?, Some(first), "the epoch when the lease is renewed");
    ensure_eq!(lease(other, HOUR).await?, None, "what another member gets");
    bench.store.leave(one).await?;
    ensure_eq!(lease(one, HOUR).await?, None, "what a dead member gets");
    let short = bench.harness.timing().lease;
    let second = lease(other, short).await?.ok_or_else(|| Failed("a dead member keeps the lease".into()))?;
    ensure!(second > first, "the epoch {second} came after {first}");
    let stale = bench.store.purge(first, &listed, HOUR).await;
    let kind = stale.as_ref().err().map(saga_core::store::StoreError::kind);
    ensure_eq!(kind, Some(StoreErrorKind::Conflict), "how a purge under an older epoch ends");
    ensure_eq!(bench.whole(&saga).await?.records.len(), 1, "the records after a purge under an older epoch");
    ensure_eq!(bench.store.purge(second, &listed, HOUR).await?.deleted, [saga.id], "what is purged under the epoch");
    bench.outlast_lease().await;
    let bench = bench.reopen().await?;
    let next = bench.store.lease_maintenance(bench.member().await?, HOUR).await?;
    ensure!(next.is_some_and(|next| next > second), "after {second} another member got the epoch {next:?}");
    Ok(())
}

pub(crate) async fn a_deleted_key_is_new<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = ended(&bench, "k-1", Some(tombstone())).await?;
    purge(&bench).await?;
    let again = bench.new_saga(&begun.tenant, "k-1").await?;
    let known = match bench.start_new(again.clone()).await? {
        Started::AlreadyExists(known) => known,
        Started::New => return Err(Failed("a start under the key of a tombstone is new".into())),
    };
    ensure_eq!((known.id, known.is_tombstone()), (begun.id, true), "what has the key");
    ensure_eq!(
        (known.definition, known.input_hash),
        (again.definition.clone(), again.input_hash.clone()),
        "who it was"
    );
    let changes = Changes { start: Some(Box::new(again.clone())), ..Changes::default() };
    let applied = bench.store.record(vec![changes.clone()]).await?;
    ensure!(matches!(&applied[..], [Err(_)]), "a change started a saga under the key of a tombstone: {applied:?}");
    bench.store.set_expiry(&begun.tenant, &begun.key, Some(&at_once())).await?;
    ensure_eq!(purge(&bench).await?.deleted, [begun.id], "what was deleted");
    let started = bench.start_new(again.clone()).await?;
    ensure!(matches!(started, Started::New), "a start under the key of a deleted saga answered {started:?}");
    let other = NewSaga { commands: Vec::new(), ..bench.new_saga(&begun.tenant, "k-1").await? };
    let started = bench.start_new(other).await?;
    let Started::AlreadyExists(known) = started else {
        return Err(Failed("the key of the new saga is not taken".into()));
    };
    ensure_eq!((known.id, known.is_tombstone()), (again.id, false), "what has the key then");
    Ok(())
}
