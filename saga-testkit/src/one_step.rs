//! Sagas of one step, for the tests that a store has beside the suite.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use saga_core::key::{Key, Tenant};
use saga_core::store::{
    Advance, Changes, Claim, Condition, DefinitionId, Entity, Lease, LockRequest, NewRecord, NewSaga, NewWork,
    RecordedOutcome, SagaId, Started, Status, StepId, Store, StoreErrorKind, WorkId, WorkKind, WorkRef,
};

const STEP: &str = "reserve-stock";
/// What follows it where a saga goes on.
const NEXT_STEP: &str = "charge-card";

/// The definition of all of them.
#[must_use]
pub fn definition() -> DefinitionId {
    DefinitionId { name: "create-order".into(), version: 1 }
}

/// A saga with the command of its step, which is due and free.
///
/// # Panics
/// When the store fails, or the key is none.
///
/// # Cancel safety
/// Dropped, some ids are never used.
pub async fn new_saga<S: Store>(store: &S, key: &str) -> NewSaga {
    let ids = store.reserve_ids(2).await.expect("the store gives ids");
    let id = SagaId(ids.start);
    let key = Key::new(key).expect("a key");
    let command = NewWork {
        id: WorkId(ids.start + 1),
        saga: id,
        tenant: Tenant::default(),
        key: key.clone(),
        kind: WorkKind::Do,
        step: StepId::doing(STEP),
        definition: definition(),
        payload: None,
        due_in: Duration::ZERO,
        lease: None,
        tried: None,
    };
    NewSaga {
        id,
        tenant: Tenant::default(),
        key,
        definition: definition(),
        digest: [7; 32],
        input: b"{}".to_vec(),
        input_hash: vec![1],
        status: Status::Running,
        state: vec![0],
        commands: vec![command],
        expiry: None,
    }
}

/// Starts a saga and answers the claim on its only command.
///
/// # Panics
/// When the store fails, or knows the saga already.
///
/// # Cancel safety
/// Dropped, the saga is started or not.
pub async fn begun<S: Store>(store: &S, key: &str) -> Claim {
    let saga = new_saga(store, key).await;
    let claim = Claim {
        work: WorkRef { id: saga.commands[0].id, epoch: 1 },
        saga: saga.id,
        tenant: Tenant::default(),
        key: saga.key.clone(),
        step: StepId::doing(STEP),
        kind: WorkKind::Do,
        start: None,
        locks: Vec::new(),
    };
    let started = loop {
        match store.start(vec![saga.clone()]).await {
            // Another start holds a row for longer than the store waits.
            Err(error) if error.kind() == StoreErrorKind::Conflict => tokio::task::yield_now().await,
            started => break started.expect("the store starts it"),
        }
    };
    assert!(matches!(started[..], [Started::New]), "it is there already: {started:?}");
    claim
}

/// What the step of a claim asks for that takes a semantic lock on an entity, and waits for it for an hour at most.
#[must_use]
pub fn asks_for(claim: &Claim, entity: Entity) -> LockRequest {
    LockRequest {
        tenant: claim.tenant.clone(),
        saga: claim.saga,
        key: claim.key.clone(),
        owner: claim.key.clone(),
        name: STEP.to_owned(),
        entities: vec![entity],
        work: claim.work,
        within: Duration::from_hours(1),
    }
}

/// The changes that complete the saga of a claim, which has version 1.
#[must_use]
pub fn completed(claim: &Claim) -> Changes {
    let record = NewRecord {
        saga: claim.saga,
        tenant: claim.tenant.clone(),
        key: claim.key.clone(),
        step: claim.step.clone(),
        outcome: RecordedOutcome::Done,
        output: Some(b"1".to_vec()),
        error: None,
        input: None,
        position: 1,
        attempts: 1,
        took: Duration::ZERO,
    };
    Changes {
        saga: Some(Advance { id: claim.saga, expected: 1, status: Status::Completed, state: vec![1], expiry: None }),
        finished: vec![(claim.work, Condition::Held)],
        records: vec![record],
        ..Changes::default()
    }
}

/// The changes by which the saga of a claim, which has version 1, goes on from its step to another: as
/// [`completed`], with the command of that step, which is leased.
#[must_use]
pub fn advanced(claim: &Claim, next: WorkId, lease: Lease) -> Changes {
    let next = NewWork {
        id: next,
        saga: claim.saga,
        tenant: claim.tenant.clone(),
        key: claim.key.clone(),
        kind: WorkKind::Do,
        step: StepId::doing(NEXT_STEP),
        definition: definition(),
        payload: None,
        due_in: Duration::ZERO,
        lease: Some(lease),
        tried: None,
    };
    let saga = Advance { id: claim.saga, expected: 1, status: Status::Running, state: vec![1], expiry: None };
    Changes { saga: Some(saga), commands: vec![next], ..completed(claim) }
}

/// The status of the saga with this key, if there is one.
///
/// # Panics
/// When the store fails, or the key is none.
///
/// # Cancel safety
/// It only reads.
pub async fn status<S: Store>(store: &S, key: &str) -> Option<Status> {
    let saga = store.saga(&Tenant::default(), &Key::new(key).expect("a key")).await;
    saga.expect("the store answers").map(|saga| saga.status)
}

/// A lease of a new member that lives for an hour.
///
/// # Panics
/// When the store fails.
///
/// # Cancel safety
/// Dropped, a member more may have joined.
pub async fn member<S: Store>(store: &S, ttl: Duration) -> Lease {
    let joined = store.join(Duration::from_hours(1)).await.expect("the store lets it join");
    Lease { owner: joined.member, ttl }
}
