//! Playing a saga: with its functions' answers given, from its beginning or from where it was stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use saga_core::env::BoxFuture;
use saga_core::key::StepId;
use saga_core::memory::MemoryStore;
use saga_core::saga::Player;
use saga_core::step::Payload;
use saga_core::store::{
    Changes, DefinitionId, Ids, NewRecord, NewSaga, NewWork, RecordedOutcome, Records, SagaId, SagaWithSteps, Sagas,
    Status, WorkId, WorkKind,
};
use saga_core::{Key, Outcome, Runtime, Saga, StepError, Tenant};

use super::file::{End, Record, Run, Stand, Work};

/// The key of every saga that is played.
const KEY: &str = "golden";
/// A saga that is played does not wait for anything.
const WITHIN: Duration = Duration::from_secs(30);

/// Answers for the functions of a saga, and notes where it stands in front of each.
pub(super) struct Answers {
    pub(super) returned: BTreeMap<String, String>,
    pub(super) rejects: Option<String>,
    pub(super) store: MemoryStore,
    pub(super) stands: Arc<Mutex<Vec<Stand>>>,
}

impl Answers {
    fn note(&self, before: String) -> BoxFuture<'static, ()> {
        let (store, stands) = (self.store.clone(), Arc::clone(&self.stands));
        Box::pin(async move {
            let Ok(key) = Key::new(KEY) else { return };
            // A saga whose start is not committed yet is not stored.
            if let Ok(Some(stored)) = store.saga_with_steps(&Tenant::default(), &key).await {
                stands.lock().unwrap_or_else(PoisonError::into_inner).push(stand_of(before, &stored));
            }
        })
    }
}

impl Player for Answers {
    fn does(&self, step: &str) -> BoxFuture<'static, Result<Vec<u8>, StepError>> {
        let name = step.split('#').next().unwrap_or(step);
        let rejects = self.rejects.as_deref() == Some(name);
        let output = self.returned.get(name).map_or_else(|| b"null".to_vec(), |output| output.clone().into_bytes());
        let noted = self.note(format!("in front of `{step}`"));
        Box::pin(async move {
            noted.await;
            if rejects { Err(StepError::reject("the golden file lets it reject")) } else { Ok(output) }
        })
    }

    fn receives(&self, step: &str) -> Option<Vec<u8>> {
        self.returned.get(step).map(|signal| signal.clone().into_bytes())
    }

    fn undoes(&self, step: &str) -> BoxFuture<'static, Result<(), StepError>> {
        let noted = self.note(format!("in front of the undo of `{step}`"));
        Box::pin(async move {
            noted.await;
            Ok(())
        })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn stand_of(before: String, stored: &SagaWithSteps) -> Stand {
    let text_of = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(text);
    let record = |record: &saga_core::store::StepRecord| Record {
        step: record.step.to_string(),
        outcome: record.outcome.as_str().to_owned(),
        position: record.position,
        output: text_of(&record.output),
        error: text_of(&record.error),
        input: text_of(&record.input),
    };
    let work = |work: &saga_core::store::WorkStatus| Work {
        kind: work.kind.as_str().to_owned(),
        id: Some(work.work.id.0),
        step: work.step.to_string(),
        payload: text_of(&work.payload),
    };
    Stand {
        before,
        status: stored.saga.status.as_str().to_owned(),
        state: text(&stored.saga.state),
        records: stored.records.iter().map(record).collect(),
        work: stored.work.iter().map(work).collect(),
    }
}

/// Runs a saga from its beginning.
pub(super) async fn record<S: saga_core::store::Store, I: Payload>(
    saga: &Saga<S, I>,
    input: &[u8],
    returned: &BTreeMap<String, String>,
    rejects: Option<&str>,
) -> Result<Run, String> {
    let stands = Arc::<Mutex<Vec<Stand>>>::default();
    let store = MemoryStore::new();
    let answers = Answers {
        returned: returned.clone(),
        rejects: rejects.map(str::to_owned),
        store: store.clone(),
        stands: Arc::clone(&stands),
    };
    let (runtime, saga) = runtime_of(saga, answers).await?;
    let input: I = serde_json::from_slice(input).map_err(|error| error.to_string())?;
    runtime.start(&saga, KEY, input).await.map_err(|error| error.to_string())?;
    let end = end_of(&runtime, &store).await;
    runtime.shutdown().await;
    let stands = std::mem::take(&mut *stands.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Run { rejects: rejects.map(str::to_owned), stands, end: end? })
}

/// Runs a saga from where it was stored.
pub(super) async fn replay<S: saga_core::store::Store, I: Payload>(
    saga: &Saga<S, I>,
    input: &str,
    returned: &BTreeMap<String, String>,
    rejects: Option<&str>,
    stand: &Stand,
) -> Result<End, String> {
    let store = MemoryStore::new();
    let answers = Answers {
        returned: returned.clone(),
        rejects: rejects.map(str::to_owned),
        store: store.clone(),
        stands: Arc::default(),
    };
    put(saga, &store, input, stand).await?;
    let (runtime, _) = runtime_of(saga, answers).await?;
    let end = end_of(&runtime, &store).await;
    runtime.shutdown().await;
    end
}

async fn runtime_of<S: saga_core::store::Store, I: Payload>(
    saga: &Saga<S, I>,
    answers: Answers,
) -> Result<(Runtime<MemoryStore>, Saga<MemoryStore, I>), String> {
    let store = answers.store.clone();
    let player: Arc<dyn Player> = Arc::new(answers);
    let saga = saga.played(&player);
    // Each step is a commit of its own, so that the saga is stored in front of each.
    let runtime = Runtime::builder(store).saga(&saga).settings(|settings| settings.run_on_max = 1).start().await;
    Ok((runtime.map_err(|error| error.to_string())?, saga))
}

async fn end_of(runtime: &Runtime<MemoryStore>, store: &MemoryStore) -> Result<End, String> {
    let failed = |error: saga_core::engine::RuntimeError| error.to_string();
    let running = runtime.attach(KEY).await.map_err(failed)?;
    let outcome = tokio::time::timeout(WITHIN, running.outcome()).await;
    let outcome = outcome.map_err(|_| format!("it does not end within {WITHIN:?}"))?.map_err(failed)?;
    let status = runtime.saga(KEY).await.map_err(failed)?.ok_or("it is gone")?;
    let key = Key::new(KEY).map_err(|error| error.to_string())?;
    let records = store.records_of(&Tenant::default(), &key).await.map_err(|error| error.to_string())?;
    let given = records.iter().filter_map(|record| Some((record.step.to_string(), text(record.input.as_deref()?))));
    Ok(End {
        outcome: match outcome {
            Outcome::Completed { .. } => "completed".to_owned(),
            Outcome::Compensated { failed_step, .. } => format!("compensated, because `{failed_step}` failed"),
            stuck @ Outcome::Stuck { .. } => stuck.to_string(),
        },
        steps: status.steps.iter().map(|step| (step.step.clone(), step.phase.as_str().to_owned())).collect(),
        given: given.collect(),
    })
}

/// Stores a saga as it stood.
async fn put<S: saga_core::store::Store, I>(
    saga: &Saga<S, I>,
    store: &MemoryStore,
    input: &str,
    stand: &Stand,
) -> Result<(), String> {
    let ids = store.reserve_ids(1_000).await.map_err(|error| error.to_string())?;
    let (id, tenant) = (SagaId(ids.start), Tenant::default());
    let key = Key::new(KEY).map_err(|error| error.to_string())?;
    let definition = DefinitionId { name: saga.name().into(), version: saga.version() };
    let bytes = |text: &Option<String>| text.as_ref().map(|text| text.clone().into_bytes());
    let mut commands = Vec::new();
    for (work, id_of_row) in stand.work.iter().zip(ids.start + 1..) {
        commands.push(NewWork {
            id: WorkId(work.id.unwrap_or(id_of_row)),
            saga: id,
            tenant: tenant.clone(),
            key: key.clone(),
            kind: WorkKind::parse(&work.kind).ok_or_else(|| format!("no work is {:?}", work.kind))?,
            step: StepId::from_stored(&work.step),
            definition: definition.clone(),
            payload: bytes(&work.payload),
            due_in: Duration::ZERO,
            lease: None,
            tried: None,
        });
    }
    let mut records = Vec::new();
    for record in &stand.records {
        records.push(NewRecord {
            saga: id,
            tenant: tenant.clone(),
            key: key.clone(),
            step: StepId::from_stored(&record.step),
            outcome: RecordedOutcome::parse(&record.outcome)
                .ok_or_else(|| format!("no outcome is {:?}", record.outcome))?,
            output: bytes(&record.output),
            error: bytes(&record.error),
            input: bytes(&record.input),
            position: record.position,
            attempts: 1,
            took: Duration::ZERO,
        });
    }
    let new = NewSaga {
        id,
        tenant,
        key,
        definition,
        digest: saga.digest(),
        input: input.as_bytes().to_vec(),
        input_hash: Vec::new(),
        status: Status::parse(&stand.status).ok_or_else(|| format!("no status is {:?}", stand.status))?,
        state: stand.state.clone().into_bytes(),
        commands,
    };
    store.start(vec![new]).await.map_err(|error| error.to_string())?;
    let applied =
        store.record(vec![Changes { records, ..Changes::default() }]).await.map_err(|error| error.to_string())?;
    match applied.into_iter().next() {
        Some(Ok(())) => Ok(()),
        other => Err(format!("it could not be stored: {other:?}")),
    }
}
