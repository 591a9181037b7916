//! A store that panics once, in the call that it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::{Claim, Hints as _, Listener, Store as _, StoreError, TransactError, TransactionBody};
use saga_testkit::intercept::{Intercept, Intercepted, OPERATIONS};

/// Everything that may be asked of a store.
pub(crate) fn operations() -> impl Iterator<Item = &'static str> {
    OPERATIONS.iter().copied().chain(["transact", "listen"])
}

/// A store with such a call.
pub(crate) fn brittle(inner: &MemoryStore, panics_in: &'static str, is_late: bool) -> Intercepted<Brittle> {
    Intercepted(Brittle { inner: inner.clone(), panics_in, is_late, has_panicked: Arc::default() })
}

#[derive(Clone)]
pub(crate) struct Brittle {
    inner: MemoryStore,
    panics_in: &'static str,
    /// Whether it panics after the call, and not before it.
    is_late: bool,
    has_panicked: Arc<AtomicBool>,
}

impl Brittle {
    pub(crate) fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::SeqCst)
    }

    async fn call<T>(&self, operation: &str, call: impl Future<Output = T>) -> T {
        let is_first = |is_late| {
            operation == self.panics_in && self.is_late == is_late && !self.has_panicked.swap(true, Ordering::SeqCst)
        };
        assert!(!is_first(false), "{operation} was not to be called");
        let answer = call.await;
        assert!(!is_first(true), "{operation} was carried out");
        answer
    }
}

impl Intercept for Brittle {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    async fn around<T: Send>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.call(operation, call).await
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        assert!(
            self.panics_in != "listen" || self.has_panicked.swap(true, Ordering::SeqCst),
            "listen was not to be called"
        );
        self.inner.listen()
    }

    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<MemoryConn>>,
    ) -> Result<(), TransactError> {
        self.call("transact", self.inner.transact(claims, body)).await
    }
}
