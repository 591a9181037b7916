//! What an author supplies.
//!
//! # Cancel safety
//! A check that is given up drops the call that it waits for. A harness need not care: that backend is not used again.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use saga_core::store::{IdempotencyKeys, Store};
use saga_core::transport::Transport;

/// An error of whatever a harness uses.
pub type Fault = Box<dyn Error + Send + Sync>;

/// What an author supplies to have a store checked. The methods may be written as `async fn`.
pub trait StoreHarness: Send + Sync + 'static {
    /// The store.
    type Store: Store;

    /// An empty store that shares nothing with any other: its own schema, prefix or file. It is called from many tests
    /// and processes at once.
    fn fresh(&self) -> impl Future<Output = Self::Store> + Send;

    /// Closes the store and opens its data again, as a second process would after the first has ended.
    fn reopen(&self, store: Self::Store) -> impl Future<Output = Self::Store> + Send;

    /// A second process on the same data beside the first; nothing where only one process works on the data. A store whose
    /// [`Capabilities::shared`](saga_core::store::Capabilities::shared) is set must have it.
    fn beside(&self, store: &Self::Store) -> impl Future<Output = Option<Self::Store>> + Send {
        let _ = store;
        async { None }
    }

    /// Writes as a step does: the row of that name gets the value.
    fn write_business(
        &self,
        conn: &mut <Self::Store as Store>::Conn,
        name: &str,
        value: i64,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// The committed value of the row of that name.
    fn read_business(&self, store: &Self::Store, name: &str) -> impl Future<Output = Option<i64>> + Send;

    /// Lets the store's clock go on by at least this duration. A store whose clock is not the harness's waits.
    fn pass_time(&self, store: &Self::Store, duration: Duration) -> impl Future<Output = ()> + Send {
        let _ = store;
        tokio::time::sleep(duration)
    }

    /// The shortest times that are honest with this store.
    fn timing(&self) -> Timing {
        Timing::default()
    }

    /// What this harness can provoke.
    fn provokes(&self) -> Provokes {
        Provokes::default()
    }

    /// Ends the transaction that a handler was given, as a raw `COMMIT` would. It is only called where the harness says
    /// in [`provokes`](Self::provokes) that it can.
    fn end_transaction(&self, conn: &mut <Self::Store as Store>::Conn) -> impl Future<Output = ()> + Send {
        let _ = conn;
        async {}
    }

    /// Sends a statement that the store refuses, and gives the error. A store without statements gives an error of its own.
    fn fail_statement(&self, conn: &mut <Self::Store as Store>::Conn) -> impl Future<Output = Fault> + Send {
        let _ = conn;
        async { Fault::from("a statement that fails") }
    }

    /// A handle on the same data whose next commit is answered as unknown; `commits` says whether it took place. It is
    /// only called where the harness says in [`provokes`](Self::provokes) that it can.
    fn doubtful(&self, store: &Self::Store, commits: bool) -> Option<Self::Store> {
        let _ = (store, commits);
        None
    }
}

/// What an author supplies besides, where applications can hold the store's connection in a transaction of their own, and
/// requests take effect once.
pub trait StartInHarness: StoreHarness<Store: IdempotencyKeys> {
    /// The application's transaction.
    type Transaction: Send;

    /// Opens a transaction.
    fn begin(&self, store: &Self::Store) -> impl Future<Output = Self::Transaction> + Send;

    /// The same as [`begin`](Self::begin), without a transaction: a bare connection.
    fn bare(&self, store: &Self::Store) -> impl Future<Output = Self::Transaction> + Send;

    /// Its connection.
    fn conn<'a>(&self, transaction: &'a mut Self::Transaction) -> &'a mut <Self::Store as Store>::Conn;

    /// Commits it.
    fn commit(&self, transaction: Self::Transaction) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Rolls it back.
    fn roll_back(&self, transaction: Self::Transaction) -> impl Future<Output = ()> + Send;
}

/// The shortest times that are honest with a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The shortest lease that is worth testing.
    pub lease: Duration,
    /// How long a check waits for something that should not happen, where it cannot be told otherwise.
    pub patience: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { lease: Duration::from_millis(40), patience: Duration::from_millis(60) }
    }
}

/// What a store harness can provoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Provokes {
    /// [`StoreHarness::end_transaction`] works.
    pub ended_transaction: bool,
    /// [`StoreHarness::doubtful`] works.
    pub unknown_commit: bool,
    /// [`StoreHarness::pass_time`] lets hours pass at once.
    pub hours: bool,
}

/// What an author supplies to have a transport checked. The methods may be written as `async fn`.
pub trait TransportHarness: Send + Sync + 'static {
    /// The transport.
    type Transport: Transport;

    /// A transport that shares no topic and no subscription with any other.
    fn fresh(&self) -> impl Future<Output = Self::Transport> + Send;

    /// A second connection to the same topics and subscriptions, as another process has it.
    fn beside(&self, transport: &Self::Transport) -> impl Future<Output = Self::Transport> + Send;

    /// How often a rejected message is delivered again.
    fn rejections_max(&self) -> u32;

    /// Lets at most so many messages lie in the queue of a subscription, or a few more; answers whether it can.
    fn limit(
        &self,
        transport: &Self::Transport,
        subscription: &str,
        messages: usize,
    ) -> impl Future<Output = bool> + Send {
        let _ = (transport, subscription, messages);
        async { false }
    }

    /// The messages that were given up, by the text of their payloads, where the harness can tell.
    fn given_up(&self, transport: &Self::Transport) -> impl Future<Output = Option<Vec<Vec<u8>>>> + Send {
        let _ = transport;
        async { None }
    }

    /// The user that the transport checks its own messages to be from; nothing where it checks none.
    fn user(&self) -> Option<String> {
        None
    }

    /// Whether messages of a key are delivered while earlier ones of that key are unsettled. A transport may hold them back.
    fn delivers_behind_unsettled(&self) -> bool {
        true
    }

    /// How long a message may take that must come.
    fn arrival(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// How long a check waits for something that should not happen.
    fn patience(&self) -> Duration {
        Timing::default().patience
    }
}

/// A backend that is not there, such as one without a database address. Its checks are listed and skipped, unless
/// `SAGA_TEST_REQUIRED` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// The backend's name.
    pub backend: String,
    /// What is missing, and how to get it.
    pub reason: String,
}
