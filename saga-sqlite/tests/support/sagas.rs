//! Sagas of one step.

use std::time::Duration;

use saga_core::key::{Key, StepId, Tenant};
use saga_core::store::{
    Advance, Changes, Claim, Condition, DefinitionId, Ids as _, NewRecord, NewSaga, NewWork, RecordedOutcome, SagaId,
    Sagas as _, Started, Status, WorkId, WorkKind, WorkRef,
};
use saga_sqlite::SqliteStore;

const STEP: &str = "reserve-stock";

pub fn definition() -> DefinitionId {
    DefinitionId { name: "create-order".into(), version: 1 }
}

/// A saga of one step, with its command.
pub async fn new_saga(store: &SqliteStore, key: &str) -> NewSaga {
    let ids = store.reserve_ids(2).await.unwrap();
    let id = SagaId(ids.start);
    let command = NewWork {
        id: WorkId(ids.start + 1),
        saga: id,
        tenant: Tenant::default(),
        key: Key::new(key).unwrap(),
        kind: WorkKind::Do,
        step: StepId::doing(STEP),
        definition: definition(),
        payload: None,
        due_in: Duration::ZERO,
        lease: None,
    };
    NewSaga {
        id,
        tenant: Tenant::default(),
        key: Key::new(key).unwrap(),
        definition: definition(),
        digest: [7; 32],
        input: b"{}".to_vec(),
        input_hash: vec![1],
        status: Status::Running,
        state: vec![0],
        commands: vec![command],
    }
}

/// Starts a saga and answers the claim on its only command.
pub async fn begun(store: &SqliteStore, key: &str) -> Claim {
    let saga = new_saga(store, key).await;
    let claim = Claim {
        work: WorkRef { id: saga.commands[0].id, epoch: 1 },
        saga: saga.id,
        tenant: Tenant::default(),
        key: saga.key.clone(),
        step: StepId::doing(STEP),
        kind: WorkKind::Do,
        start: None,
    };
    let started = store.start(vec![saga]).await.unwrap();
    assert!(matches!(started[..], [Started::New]));
    claim
}

/// The changes that complete the saga of a claim, which has version 1.
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
        saga: Some(Advance { id: claim.saga, expected: 1, status: Status::Completed, state: vec![1] }),
        finished: vec![(claim.work, Condition::Held)],
        records: vec![record],
        ..Changes::default()
    }
}

pub async fn status(store: &SqliteStore, key: &str) -> Option<Status> {
    store.saga(&Tenant::default(), &Key::new(key).unwrap()).await.unwrap().map(|saga| saga.status)
}
