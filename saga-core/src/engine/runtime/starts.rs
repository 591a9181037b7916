//! Starting sagas.

use std::pin::pin;

use super::handle::SagaHandle;
use super::runtime::Runtime;
use super::start_saga::StartSaga;
use crate::engine::context::StartError;
use crate::env::{Activity, during};
use crate::key::Key;
use crate::saga::Saga;
use crate::step::{Payload, codec};
use crate::store::Store;

impl<S: Store> Runtime<S> {
    /// Starts a saga. When the start is awaited and returns, the saga is durable. The same key with the same input gives
    /// the same saga, however often and from whichever process it is started (G6).
    ///
    /// What is returned can say [when the saga begins](StartSaga::after), [how long it may take](StartSaga::within), and
    /// that it is started [in the caller's transaction](StartSaga::in_tx).
    ///
    /// The key is 1 to 120 bytes of visible ASCII without `>`, and unique in its tenant over all definitions. Derive it from the
    /// request, for example from the id of the order or from the client's `Idempotency-Key`. If the input has an id or a time that
    /// is made anew for each request, name what counts with [`fingerprint`](StartSaga::fingerprint).
    ///
    /// # Errors
    /// When the key or the input is refused, the key belongs to another saga or was used with another input, or the store
    /// fails. Nothing was changed then, or the same call may be repeated.
    ///
    /// # Cancel safety
    /// When dropped, the saga was started or not; start it again with the same key to be sure.
    #[expect(clippy::needless_pass_by_value, reason = "an input is handed over, as a step takes it")]
    pub fn start<'a, I: Payload, R>(
        &'a self,
        saga: &'a Saga<S, I, R>,
        key: impl AsRef<str>,
        input: I,
    ) -> StartSaga<'a, S, R> {
        StartSaga::new(self, saga.definition(), encode(key, &input))
    }

    /// Starts many sagas of one definition: one commit carries up to 1,000 of them, more of them go in several, in their
    /// order. There is one answer for each, in the order of the requests, with the guarantees of [`Runtime::start`]: when
    /// it returned, those that were started are durable, and for the others the same call may be repeated (G6). One that
    /// is refused does not hinder the others.
    ///
    /// # Errors
    /// Each answer has those of [`Runtime::start`]. A failure of the store is the answer to all that share the commit.
    ///
    /// # Cancel safety
    /// When dropped, each saga was started or not; start them again with the same keys to be sure.
    ///
    /// # Examples
    /// ```
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Runtime, Saga, StartError, StepError, saga_step};
    ///
    /// #[saga_step]
    /// async fn greet(name: String) -> Result<String, StepError> {
    ///     Ok(format!("hello {name}"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let greeting = Saga::named("greeting").input::<String>().step::<greet>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&greeting).start().await?;
    ///
    /// let guests = [("guest-1", "Ada"), ("guest-2", "Grace"), ("guest-1", "Alan")];
    /// let started = runtime.start_many(&greeting, guests.map(|(key, name)| (key, name.to_owned()))).await;
    ///
    /// assert!(started[0].is_ok() && started[1].is_ok());
    /// assert!(matches!(started[2], Err(StartError::PayloadMismatch { .. })));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_many<I: Payload, R, K: AsRef<str>>(
        &self,
        saga: &Saga<S, I, R>,
        sagas: impl IntoIterator<Item = (K, I)>,
    ) -> Vec<Result<SagaHandle<S, R>, StartError>> {
        let asked = sagas.into_iter().map(|(key, input)| encode(key, &input)).collect();
        let starting = pin!(self.engine.starter.start_sagas(saga.definition(), &self.tenant, asked));
        let started = during(&*self.engine.ctx.env, Activity::Waiting, starting).await;
        started.into_iter().map(|started| Ok(SagaHandle::of_start(&self.engine, started?))).collect()
    }
}

fn encode<I: Payload>(key: impl AsRef<str>, input: &I) -> Result<(Key, Vec<u8>), StartError> {
    let key = Key::new(key)?;
    let input = codec::<I>().encode(input).map_err(|error| StartError::Input(error.to_string()))?;
    Ok((key, input))
}
