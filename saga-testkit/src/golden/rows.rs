//! Sagas as a store has them and as a golden file has them.

use std::collections::BTreeMap;
use std::time::Duration;

use saga_core::key::InvalidName;
use saga_core::memory::MemoryStore;
use saga_core::store::{
    Changes, DefinitionId, NewRecord, NewSaga, NewWork, RecordedOutcome, Records, SagaId, SagaWithSteps, Sagas, Status,
    StepId, StepRecord, WorkId, WorkKind, WorkStatus,
};
use saga_core::{Key, Tenant};

use super::file::{Record, Rows, Stand, SubStand, Work};

/// How often a saga is read again that moves while its sub-sagas are read.
const READS_MAX: usize = 8;

/// The key of every saga that is played.
pub(super) const KEY: &str = "golden";

/// The key of the saga that is played, or of its sub-saga which is that step.
pub(super) fn key_of(sub_saga: Option<&str>) -> Result<Key, InvalidName> {
    match sub_saga {
        None => Key::new(KEY),
        Some(step) => Key::from_stored(&format!("{KEY}>{step}")),
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where the saga stands, with those of these sub-sagas that were begun. A saga whose start is not committed yet is not
/// stored.
pub(super) async fn stand(store: &MemoryStore, sub_sagas: &[&'static str], before: String) -> Option<Stand> {
    for _ in 0..READS_MAX {
        let outer = stored(store, None).await?;
        let mut subs = BTreeMap::new();
        for step in sub_sagas {
            let Some(sub) = stored(store, Some(step)).await else { continue };
            let (id, input) = (sub.saga.id.0, text(&sub.saga.input));
            subs.insert((*step).to_owned(), SubStand { id, input, rows: rows_of(&sub) });
        }
        // Where it moved meanwhile, the two would not belong together.
        if stored(store, None).await?.saga.version == outer.saga.version {
            return Some(Stand { before, rows: rows_of(&outer), sub_sagas: subs });
        }
    }
    None
}

/// The saga that is played, or its sub-saga which is that step.
pub(super) async fn stored(store: &MemoryStore, sub_saga: Option<&str>) -> Option<SagaWithSteps> {
    store.saga_with_steps(&Tenant::default(), &key_of(sub_saga).ok()?).await.ok()?
}

fn rows_of(stored: &SagaWithSteps) -> Rows {
    let text_of = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(text);
    let record = |record: &StepRecord| Record {
        step: record.step.to_string(),
        outcome: record.outcome.as_str().to_owned(),
        position: record.position,
        output: text_of(&record.output),
        error: text_of(&record.error),
        input: text_of(&record.input),
    };
    let work = |work: &WorkStatus| Work {
        kind: work.kind.as_str().to_owned(),
        id: Some(work.work.id.0),
        step: work.step.to_string(),
        payload: text_of(&work.payload),
    };
    Rows {
        status: stored.saga.status.as_str().to_owned(),
        state: text(&stored.saga.state),
        records: stored.records.iter().map(record).collect(),
        work: stored.work.iter().map(work).collect(),
    }
}

/// Which saga the rows are of.
pub(super) struct Owner {
    pub(super) id: SagaId,
    pub(super) key: Key,
    pub(super) definition: DefinitionId,
    pub(super) digest: [u8; 32],
}

/// Stores a saga as it stood. Rows without an id get those behind that one.
pub(super) async fn put(
    store: &MemoryStore,
    owner: Owner,
    input: &str,
    rows: &Rows,
    first_id: i64,
) -> Result<(), String> {
    let records = rows.records.iter().map(|record| new_record(&owner, record)).collect::<Result<Vec<_>, _>>()?;
    let ids = first_id..;
    let commands = rows.work.iter().zip(ids).map(|(work, id)| new_work(&owner, work, id)).collect::<Result<_, _>>()?;
    let new = NewSaga {
        id: owner.id,
        tenant: Tenant::default(),
        key: owner.key,
        definition: owner.definition,
        digest: owner.digest,
        input: input.as_bytes().to_vec(),
        input_hash: Vec::new(),
        status: Status::parse(&rows.status).ok_or_else(|| format!("no status is {:?}", rows.status))?,
        state: rows.state.clone().into_bytes(),
        commands,
        expiry: None,
    };
    store.start(vec![new]).await.map_err(|error| error.to_string())?;
    let applied =
        store.record(vec![Changes { records, ..Changes::default() }]).await.map_err(|error| error.to_string())?;
    match applied.into_iter().next() {
        Some(Ok(())) => Ok(()),
        other => Err(format!("it could not be stored: {other:?}")),
    }
}

fn new_work(owner: &Owner, work: &Work, id: i64) -> Result<NewWork, String> {
    Ok(NewWork {
        id: WorkId(work.id.unwrap_or(id)),
        saga: owner.id,
        tenant: Tenant::default(),
        key: owner.key.clone(),
        kind: WorkKind::parse(&work.kind).ok_or_else(|| format!("no work is {:?}", work.kind))?,
        step: StepId::from_stored(&work.step),
        definition: owner.definition.clone(),
        payload: bytes(work.payload.as_ref()),
        due_in: Duration::ZERO,
        lease: None,
        tried: None,
    })
}

fn new_record(owner: &Owner, record: &Record) -> Result<NewRecord, String> {
    let outcome = RecordedOutcome::parse(&record.outcome);
    Ok(NewRecord {
        saga: owner.id,
        tenant: Tenant::default(),
        key: owner.key.clone(),
        step: StepId::from_stored(&record.step),
        outcome: outcome.ok_or_else(|| format!("no outcome is {:?}", record.outcome))?,
        output: bytes(record.output.as_ref()),
        error: bytes(record.error.as_ref()),
        input: bytes(record.input.as_ref()),
        position: record.position,
        attempts: 1,
        took: Duration::ZERO,
    })
}

fn bytes(text: Option<&String>) -> Option<Vec<u8>> {
    text.map(|text| text.clone().into_bytes())
}
