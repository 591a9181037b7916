//! The runtime, as users see it.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use super::engine::Engine;
use super::handle::SagaHandle;
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::health::Health;
use crate::engine::statistics::Statistics;
use crate::env::{Activity, during};
use crate::key::{Key, Tenant};
use crate::saga::Saga;
use crate::store::{SagaRow, Store};
use crate::transport::Incoming;

/// A runtime: it starts sagas and brings them to their end. Cheap to clone. It stops when the last clone is dropped; the
/// sagas that it had not finished go on when a runtime runs on the store again.
pub struct Runtime<S: Store> {
    pub(crate) engine: Arc<Engine<S>>,
    pub(crate) tenant: Tenant,
    /// Shared by all clones: the last one stops the tasks.
    running: Arc<StopWhenDropped<S>>,
}

struct StopWhenDropped<S: Store>(Arc<Engine<S>>);

impl<S: Store> Drop for StopWhenDropped<S> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs the tasks of this engine.
pub(super) fn run<S: Store>(engine: Arc<Engine<S>>, incoming: Vec<Option<Box<dyn Incoming>>>) -> Runtime<S> {
    engine.spawn_all(incoming);
    let running = Arc::new(StopWhenDropped(Arc::clone(&engine)));
    Runtime { engine, tenant: Tenant::default(), running }
}

impl<S: Store> Runtime<S> {
    /// The same runtime, acting for another tenant.
    #[must_use]
    pub fn tenant(&self, tenant: Tenant) -> Self {
        Self { engine: Arc::clone(&self.engine), tenant, running: Arc::clone(&self.running) }
    }

    /// A handle on the saga with this key, to wait for its outcome.
    ///
    /// # Errors
    /// When there is no such saga, or the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn attach(&self, key: impl AsRef<str>) -> Result<SagaHandle<S>, RuntimeError> {
        self.attach_if(key, |_| Ok(())).await
    }

    /// A handle on the saga of this definition with this key, to wait for its [result](SagaHandle::result). The version of the
    /// definition may be another one.
    ///
    /// # Errors
    /// When there is no such saga, the key belongs to a saga of another definition, or the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    ///
    /// # Examples
    /// ```
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Runtime, RuntimeError, Saga, StepError, saga_step};
    ///
    /// #[saga_step]
    /// async fn greet(name: String) -> Result<String, StepError> {
    ///     Ok(format!("hello {name}"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let greeting = Saga::named("greeting").input::<String>().step::<greet>().returns::<greet>().build()?;
    /// let farewell = Saga::named("farewell").input::<String>().step::<greet>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&greeting).start().await?;
    /// runtime.start(&greeting, "guest-1", "Ada".to_owned()).await?;
    ///
    /// assert_eq!(runtime.attach_to(&greeting, "guest-1").await?.result().await?, "hello Ada");
    /// let refused = runtime.attach_to(&farewell, "guest-1").await.unwrap_err();
    /// assert!(matches!(refused, RuntimeError::OtherSaga { .. }));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn attach_to<I, R>(
        &self,
        saga: &Saga<S, I, R>,
        key: impl AsRef<str>,
    ) -> Result<SagaHandle<S, R>, RuntimeError> {
        let check = |row: &SagaRow| {
            let is_it = *row.definition.name == *saga.name();
            let (key, saga, expected) = (row.key.to_string(), row.definition.name.to_string(), saga.name().to_owned());
            if is_it { Ok(()) } else { Err(RuntimeError::OtherSaga { key, saga, expected }) }
        };
        self.attach_if(key, check).await
    }

    async fn attach_if<R>(
        &self,
        key: impl AsRef<str>,
        check: impl FnOnce(&SagaRow) -> Result<(), RuntimeError>,
    ) -> Result<SagaHandle<S, R>, RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key.as_ref())?;
        let row = self.engine.ctx.store.saga(&self.tenant, &key).await?;
        let row = row.ok_or_else(|| RuntimeError::NoSaga(key.to_string()))?;
        check(&row)?;
        let slot = self.engine.committer.waiters.slot(row.id);
        self.engine.outcomes.tell_of(&row);
        Ok(SagaHandle::new(&self.engine, slot, row.id, key, true))
    }

    /// The store.
    pub fn store(&self) -> &Arc<S> {
        &self.engine.ctx.store
    }

    /// What this runtime has done since it started.
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics.read()
    }

    /// The state of the store and of the transport, as the calls of this runtime found them, and which tasks of the runtime
    /// panicked. A transport reports on its own connections itself.
    pub fn health(&self) -> Health {
        let now = self.engine.ctx.env.now();
        Health {
            store: self.engine.ctx.health.store.health(now),
            store_recoveries: self.engine.ctx.health.store.recoveries(),
            transport: self.engine.ctx.health.transport.health(now),
            panicked: self.engine.ctx.lifecycle.supervisor.read(now),
        }
    }

    /// Takes nothing new, waits for running steps (at most [`shutdown_timeout`](crate::Settings::shutdown_timeout)), gives
    /// the rest back to the store, and ends.
    ///
    /// # Cancel safety
    /// When dropped, the runtime takes nothing new any more; call it again to wait for the rest.
    pub async fn shutdown(&self) {
        let ending = pin!(self.engine.shut_down());
        during(&*self.engine.ctx.env, Activity::Waiting, ending).await;
    }
}

impl<S: Store> Clone for Runtime<S> {
    fn clone(&self) -> Self {
        self.tenant(self.tenant.clone())
    }
}

impl<S: Store> fmt::Debug for Runtime<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}
