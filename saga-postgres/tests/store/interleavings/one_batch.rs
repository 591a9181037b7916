//! Two events of one saga in one batch: they are folded, so that the statement has one row of the saga (G1).

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{
    Advance, Changes, Claim, Condition, Ids as _, Records as _, Sagas as _, Started, Status, StepId, StoreErrorKind,
    WorkId, WorkRef,
};
use saga_postgres::PostgresStore;
use saga_postgres::fault_injection::Mutant;

use crate::support::{Body, Notes as _, Place, completed, new_saga};

/// A saga with two commands at once, and the claims on both.
async fn begun_twice(store: &PostgresStore) -> [Claim; 2] {
    let mut saga = new_saga(store, "k-1").await;
    let mut second = saga.commands[0].clone();
    second.id = WorkId(store.reserve_ids(1).await.unwrap().start);
    second.step = StepId::doing("charge-card");
    second.due_in = Duration::ZERO;
    saga.commands.push(second);
    let claims = [0, 1].map(|place| Claim {
        work: WorkRef { id: saga.commands[place].id, epoch: 1 },
        saga: saga.id,
        tenant: Tenant::default(),
        key: saga.key.clone(),
        step: saga.commands[place].step.clone(),
        kind: saga.commands[place].kind,
        start: None,
        locks: Vec::new(),
    });
    let started = store.start(vec![saga]).await.unwrap();
    assert!(matches!(started[..], [Started::New]));
    claims
}

/// What the done of one of the steps writes; it knows nothing of the other.
fn done(claim: &Claim, state: u8) -> Changes {
    let advance = Advance { id: claim.saga, expected: 1, status: Status::Running, state: vec![state], expiry: None };
    Changes { saga: Some(advance), ..completed(claim) }
}

async fn state(store: &PostgresStore, claim: &Claim) -> (u64, Vec<u8>) {
    let row = store.saga(&claim.tenant, &claim.key).await.unwrap().unwrap();
    (row.version, row.state)
}

#[tokio::test]
async fn g1_two_events_of_one_saga_in_one_batch_are_one_advance() {
    let place = Place::new().await;
    let store = place.open().await;
    let claims = begun_twice(&store).await;
    let mut folded = done(&claims[0], 1);
    folded.saga =
        Some(Advance { id: claims[0].saga, expected: 1, status: Status::Completed, state: vec![1, 2], expiry: None });
    folded.finished.push((claims[1].work, Condition::Held));
    folded.records.extend(completed(&claims[1]).records);
    let body = Body::new(&claims).note("one").note("two").records(vec![folded]);
    body.transact(&store).await.unwrap();
    assert_eq!(state(&store, &claims[0]).await, (2, vec![1, 2]));
    assert_eq!(place.notes().await, ["one", "two"]);
    for claim in &claims {
        assert!(store.record_of(&claim.tenant, &claim.key, &claim.step).await.unwrap().is_some(), "{}", claim.step);
    }
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn two_rows_of_one_saga_are_refused_and_nothing_is_kept() {
    let place = Place::new().await;
    let store = place.open().await;
    let claims = begun_twice(&store).await;
    let apart = vec![done(&claims[0], 1), done(&claims[1], 2)];
    let error = Body::new(&claims).note("one").note("two").records(apart).transact(&store).await.unwrap_err();
    assert_eq!(error.error.kind(), StoreErrorKind::Misuse);
    assert_eq!(state(&store, &claims[0]).await, (1, vec![0]));
    assert_eq!(place.notes().await, Vec::<String>::new());
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn without_folding_one_of_two_events_is_lost() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().mutant(Mutant::AcceptsTwoChangesOfOneSaga)).await.unwrap();
    let claims = begun_twice(&store).await;
    let apart = vec![done(&claims[0], 1), done(&claims[1], 2)];
    Body::new(&claims).note("one").note("two").records(apart).transact(&store).await.unwrap();
    // Both steps are recorded and committed, and the saga knows of one of them.
    assert_eq!(place.notes().await, ["one", "two"]);
    let (version, state) = state(&store, &claims[0]).await;
    assert!(version == 2 && (state == [1] || state == [2]), "version {version}, state {state:?}");
    store.close().await;
    place.remove().await;
}
