//! Playing a saga: with its functions' answers given, from its beginning or from where it was stored.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use saga_core::engine::{RuntimeError, SagaStatus};
use saga_core::memory::MemoryStore;
use saga_core::saga::Player;
use saga_core::step::Payload;
use saga_core::store::{DefinitionId, Ids, Records, SagaId, Status, Store};
use saga_core::{Outcome, Runtime, Saga, Tenant};

use super::answers::Answers;
use super::file::{End, Run, Stand, SubEnd};
use super::rows::{KEY, Owner, key_of, put, stored, text};

/// How often, and each time for how long, the end of a saga is waited for. One that is played does not wait for anything,
/// so this is only used up where it never ends.
const WAITS_MAX: u32 = 600;
const WAIT: Duration = Duration::from_millis(50);
/// So many ids are enough for a saga and its sub-sagas.
const IDS: u32 = 1_000;

/// Sagas that are steps, by the names of these steps.
pub(super) type SubSagas<S> = Vec<(&'static str, Saga<S, ()>)>;

/// A definition that is played, and what its functions answer.
pub(super) struct Played<'a, S: Store, I> {
    pub(super) saga: &'a Saga<S, I>,
    /// The sub-sagas that are played as sagas, by the steps that they are, as the rows of them are.
    pub(super) sub_sagas: SubSagas<S>,
    pub(super) returned: &'a BTreeMap<String, String>,
    /// The step that rejects.
    pub(super) rejects: Option<&'a str>,
}

impl<S: Store, I: Payload> Played<'_, S, I> {
    /// Runs the saga from its beginning.
    pub(super) async fn record(&self, input: &[u8]) -> Result<Run, String> {
        let stands = Arc::<Mutex<Vec<Stand>>>::default();
        let store = MemoryStore::new();
        let (runtime, saga) = self.runtime(&store, &stands).await?;
        let input: I = serde_json::from_slice(input).map_err(|error| error.to_string())?;
        runtime.start(&saga, KEY, input).await.map_err(|error| error.to_string())?;
        let end = self.end(&runtime, &store).await;
        runtime.shutdown().await;
        let stands = std::mem::take(&mut *stands.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Run { rejects: self.rejects.map(str::to_owned), stands, end: end? })
    }

    /// Runs the saga from where it was stored.
    pub(super) async fn replay(&self, input: &str, stand: &Stand) -> Result<End, String> {
        let store = MemoryStore::new();
        self.put(&store, input, stand).await?;
        let (runtime, _) = self.runtime(&store, &Arc::default()).await?;
        let end = self.end(&runtime, &store).await;
        runtime.shutdown().await;
        end
    }

    async fn put(&self, store: &MemoryStore, input: &str, stand: &Stand) -> Result<(), String> {
        let ids = store.reserve_ids(IDS).await.map_err(|error| error.to_string())?;
        let outer = owner(self.saga, SagaId(ids.start), None)?;
        put(store, outer, input, &stand.rows, ids.start + 1).await?;
        for (step, sub) in &stand.sub_sagas {
            let saga = self.sub_sagas.iter().find(|(name, _)| name == step);
            let (_, saga) = saga.ok_or_else(|| format!("`{step}` is no sub-saga any more"))?;
            put(store, owner(saga, SagaId(sub.id), Some(step))?, &sub.input, &sub.rows, ids.start + 1).await?;
        }
        Ok(())
    }

    async fn runtime(
        &self,
        store: &MemoryStore,
        stands: &Arc<Mutex<Vec<Stand>>>,
    ) -> Result<(Runtime<MemoryStore>, Saga<MemoryStore, I>), String> {
        let player: Arc<dyn Player> = Arc::new(Answers {
            returned: self.returned.clone(),
            rejects: self.rejects.map(str::to_owned),
            sub_sagas: self.names(),
            store: store.clone(),
            stands: Arc::clone(stands),
        });
        let saga = if self.sub_sagas.is_empty() { self.saga.played_alone(&player) } else { self.saga.played(&player) };
        // Each step is a commit of its own, so that the saga is stored in front of each.
        let mut builder = Runtime::builder(store.clone()).settings(|settings| settings.steps_per_transaction_max = 1);
        for (_, sub) in &self.sub_sagas {
            builder = builder.saga(&sub.played(&player));
        }
        let runtime = builder.saga(&saga).start().await.map_err(|error| error.to_string())?;
        Ok((runtime, saga))
    }

    fn names(&self) -> Vec<&'static str> {
        self.sub_sagas.iter().map(|(step, _)| *step).collect()
    }

    async fn end(&self, runtime: &Runtime<MemoryStore>, store: &MemoryStore) -> Result<End, String> {
        let outcome = self.outcome(runtime).await?;
        let status = status_of(runtime, None).await?.ok_or("it is gone")?;
        let mut sub_sagas = BTreeMap::new();
        for step in self.names() {
            let Some((status, row)) = status_of(runtime, Some(step)).await?.zip(stored(store, Some(step)).await) else {
                continue;
            };
            let end = SubEnd {
                version: status.summary.version,
                status: status.summary.status.as_str().to_owned(),
                input: text(&row.saga.input),
                steps: steps_of(&status),
                given: given(store, Some(step)).await?,
            };
            sub_sagas.insert(step.to_owned(), end);
        }
        Ok(End { outcome, steps: steps_of(&status), given: given(store, None).await?, sub_sagas })
    }

    /// How the saga ends. One whose sub-saga needs a person waits for it for ever.
    async fn outcome(&self, runtime: &Runtime<MemoryStore>) -> Result<String, String> {
        let running = runtime.attach(KEY).await.map_err(|error| error.to_string())?;
        let mut outcome = pin!(running.outcome());
        for _ in 0..WAITS_MAX {
            if let Ok(outcome) = tokio::time::timeout(WAIT, &mut outcome).await {
                return Ok(match outcome.map_err(|error| error.to_string())? {
                    Outcome::Completed { .. } => "completed".to_owned(),
                    Outcome::Compensated { failed_step, .. } => format!("compensated, because `{failed_step}` failed"),
                    other @ (Outcome::Stuck { .. } | Outcome::Tombstone { .. }) => other.to_string(),
                });
            }
            for step in self.names() {
                let Some(sub) = status_of(runtime, Some(step)).await? else { continue };
                if sub.summary.status == Status::Stuck {
                    let stuck = sub.steps.iter().find_map(|step| Some((&step.step, step.stuck.as_ref()?)));
                    let why = stuck.map(|(step, why)| format!(" at `{step}`: {why}")).unwrap_or_default();
                    return Ok(format!("waiting for `{step}`, which is stuck{why}"));
                }
            }
        }
        Err(format!("it does not end within {:?}", WAIT.saturating_mul(WAITS_MAX)))
    }
}

async fn status_of(runtime: &Runtime<MemoryStore>, sub_saga: Option<&str>) -> Result<Option<SagaStatus>, String> {
    let key = key_of(sub_saga).map_err(|error| error.to_string())?;
    runtime.status(key.as_str()).await.map_err(|error: RuntimeError| error.to_string())
}

fn steps_of(status: &SagaStatus) -> BTreeMap<String, String> {
    status.steps.iter().map(|step| (step.step.clone(), step.phase.as_str().to_owned())).collect()
}

async fn given(store: &MemoryStore, sub_saga: Option<&str>) -> Result<BTreeMap<String, String>, String> {
    let key = key_of(sub_saga).map_err(|error| error.to_string())?;
    let records = store.records_of(&Tenant::default(), &key).await.map_err(|error| error.to_string())?;
    let given = records.iter().filter_map(|record| Some((record.step.to_string(), text(record.input.as_deref()?))));
    Ok(given.collect())
}

fn owner<S: Store, I>(saga: &Saga<S, I>, id: SagaId, sub_saga: Option<&str>) -> Result<Owner, String> {
    Ok(Owner {
        id,
        key: key_of(sub_saga).map_err(|error| error.to_string())?,
        definition: DefinitionId { name: saga.name().into(), version: saga.version() },
        digest: saga.digest(),
    })
}
