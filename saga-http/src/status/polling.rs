//! Asking the store whether sagas have changed, once for all clients that wait for them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use saga_core::store::SagaId;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::sagas::Sagas;

/// The pause between two questions.
const INTERVAL: Duration = Duration::from_millis(100);

/// The longest pause between two questions about one saga.
const INTERVAL_MAX: Duration = Duration::from_secs(2);

/// A saga is asked for again after this fraction of the time that clients have waited for it.
const PATIENCE: u32 = 100;

/// How many sagas are asked for at a time.
const CHUNK: usize = 500;

/// The version of a saga that is no longer in the store.
const GONE: u64 = u64::MAX;

/// One task that asks for all sagas that clients wait for. It runs as long as a client waits.
pub(super) struct Polling {
    sagas: Arc<dyn Sagas>,
    awaited: Mutex<BTreeMap<SagaId, Awaited>>,
    /// Whether the last question had no answer. It is told once in an outage.
    is_failing: AtomicBool,
}

struct Awaited {
    version: watch::Sender<u64>,
    since: Instant,
    next: Instant,
}

impl Polling {
    pub(super) fn new(sagas: Arc<dyn Sagas>) -> Arc<Self> {
        Arc::new(Self { sagas, awaited: Mutex::default(), is_failing: AtomicBool::new(false) })
    }

    /// Changes when the saga has another version than the store had before.
    pub(super) fn subscribe(self: &Arc<Self>, saga: SagaId) -> watch::Receiver<u64> {
        let mut awaited = self.lock();
        if awaited.is_empty() {
            tokio::spawn(run(Arc::downgrade(self)));
        }
        let now = Instant::now();
        let new = || Awaited { version: watch::Sender::new(0), since: now, next: now };
        awaited.entry(saga).or_insert_with(new).version.subscribe()
    }

    /// The sagas to ask for now; `None` if no client waits any more.
    fn due(&self) -> Option<Vec<SagaId>> {
        let now = Instant::now();
        let mut awaited = self.lock();
        awaited.retain(|_, awaited| awaited.version.receiver_count() > 0);
        if awaited.is_empty() {
            return None;
        }
        let due = awaited.iter_mut().filter(|(_, awaited)| awaited.next <= now);
        let taken = due.map(|(saga, awaited)| {
            awaited.next = now + (now.duration_since(awaited.since) / PATIENCE).min(INTERVAL_MAX);
            *saga
        });
        Some(taken.collect())
    }

    async fn ask(&self, asked: &[SagaId]) {
        let found = match self.sagas.progress(asked).await {
            Ok(found) => found,
            Err(error) if self.is_failing.swap(true, Ordering::Relaxed) => {
                return tracing::debug!(%error, "status not polled");
            }
            Err(error) => return tracing::warn!(%error, "status not polled"),
        };
        if self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("status polled again");
        }
        let versions: BTreeMap<SagaId, u64> = found.iter().map(|saga| (saga.saga, saga.version)).collect();
        let awaited = self.lock();
        for saga in asked {
            let Some(awaited) = awaited.get(saga) else { continue };
            let version = versions.get(saga).copied().unwrap_or(GONE);
            awaited.version.send_if_modified(|seen| std::mem::replace(seen, version) != version);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SagaId, Awaited>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends when no client waits, or when the routes are dropped.
async fn run(polling: Weak<Polling>) {
    let _panicked = Panicked(Weak::clone(&polling));
    loop {
        sleep(INTERVAL).await;
        let Some(polling) = polling.upgrade() else { return };
        let Some(due) = polling.due() else { return };
        for chunk in due.chunks(CHUNK) {
            polling.ask(chunk).await;
        }
    }
}

/// Lets go of the clients of a task that panics: they are answered with what is known, and the next client begins a new task.
struct Panicked(Weak<Polling>);

impl Drop for Panicked {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(polling) = self.0.upgrade()
        {
            polling.lock().clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use async_trait::async_trait;
    use saga_core::engine::SagaSummary;
    use saga_core::store::{
        DeadLetter, DeadLetterFilter, DeadLetterId, SagaFilter, SagaProgress, Status, StoreError, StoreErrorKind,
    };
    use saga_core::{RuntimeError, SagaStatus, Tenant};
    use tokio::time::timeout;

    use super::super::sagas::Moves;
    use super::*;

    /// Sagas that are advanced by each question.
    #[derive(Default)]
    struct Asked {
        count: AtomicUsize,
        panics: AtomicBool,
        fails: AtomicBool,
    }

    #[async_trait]
    impl Sagas for Asked {
        fn of_tenant(&self, _tenant: Tenant) -> Arc<dyn Sagas> {
            unreachable!("it is only polled")
        }

        async fn status(&self, _key: &str) -> Result<Option<SagaStatus>, RuntimeError> {
            unreachable!("it is only polled")
        }

        async fn summary(&self, _key: &str) -> Result<Option<SagaSummary>, RuntimeError> {
            unreachable!("it is only polled")
        }

        async fn list(&self, _filter: SagaFilter) -> Result<Vec<SagaSummary>, RuntimeError> {
            unreachable!("it is only polled")
        }

        async fn progress(&self, sagas: &[SagaId]) -> Result<Vec<SagaProgress>, RuntimeError> {
            assert!(!self.panics.swap(false, Ordering::Relaxed), "the store panics once");
            let version = self.count.fetch_add(1, Ordering::Relaxed) as u64 + 1;
            if self.fails.load(Ordering::Relaxed) {
                let error = StoreError::new(StoreErrorKind::Unavailable, "progress", "the store is away");
                return Err(error.into());
            }
            Ok(sagas.iter().map(|saga| SagaProgress { saga: *saga, status: Status::Running, version }).collect())
        }

        fn moves(&self, _saga: SagaId) -> Option<Box<dyn Moves>> {
            None
        }

        async fn dead_letters(&self, _filter: DeadLetterFilter) -> Result<Vec<DeadLetter>, RuntimeError> {
            unreachable!("it is only polled")
        }

        async fn dead_letter(&self, _id: DeadLetterId) -> Result<Option<DeadLetter>, RuntimeError> {
            unreachable!("it is only polled")
        }
    }

    async fn pass(time: Duration) {
        assert!(timeout(time, std::future::pending::<()>()).await.is_err());
    }

    /// The store is asked ten times a second, however many clients wait for however many sagas.
    #[tokio::test(start_paused = true)]
    async fn the_store_is_asked_once_for_all_clients() {
        let asked = Arc::new(Asked::default());
        let polling = Polling::new(asked.clone());
        let mut clients: Vec<_> = (0..200).map(|client| polling.subscribe(SagaId(client % 20))).collect();
        pass(Duration::from_secs(5)).await;
        let questions = asked.count.load(Ordering::Relaxed);
        assert!((40..=50).contains(&questions), "{questions}");
        assert!(clients.iter_mut().all(|client| client.has_changed().unwrap()));
        // The longer clients have waited, the less often it is asked.
        pass(Duration::from_mins(10)).await;
        let before = asked.count.load(Ordering::Relaxed);
        pass(Duration::from_secs(100)).await;
        let questions = asked.count.load(Ordering::Relaxed) - before;
        assert!((45..=50).contains(&questions), "{questions}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_clients_nothing_is_asked() {
        let asked = Arc::new(Asked::default());
        let polling = Polling::new(asked.clone());
        let clients = [polling.subscribe(SagaId(1)), polling.subscribe(SagaId(1))];
        pass(Duration::from_secs(1)).await;
        drop(clients);
        pass(Duration::from_secs(1)).await;
        assert!(polling.lock().is_empty());
        let questions = asked.count.load(Ordering::Relaxed);
        pass(Duration::from_mins(1)).await;
        assert_eq!(asked.count.load(Ordering::Relaxed), questions);
        // The next client is served again.
        polling.subscribe(SagaId(2)).changed().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_panics_once_does_not_end_the_polling() {
        let asked = Arc::new(Asked { panics: AtomicBool::new(true), ..Asked::default() });
        let polling = Polling::new(asked.clone());
        let mut client = polling.subscribe(SagaId(1));
        timeout(Duration::from_mins(1), client.changed()).await.expect("the client is let go").unwrap_err();
        timeout(Duration::from_mins(1), polling.subscribe(SagaId(1)).changed())
            .await
            .expect("it is polled again")
            .unwrap();
    }

    /// The log has one warning for an outage of the store, however often it is asked.
    #[tokio::test(start_paused = true)]
    async fn an_outage_of_the_store_is_told_once() {
        let asked = Arc::new(Asked { fails: AtomicBool::new(true), ..Asked::default() });
        let polling = Polling::new(asked.clone());
        let mut client = polling.subscribe(SagaId(1));
        pass(Duration::from_secs(5)).await;
        assert!(asked.count.load(Ordering::Relaxed) > 40 && polling.is_failing.load(Ordering::Relaxed));
        asked.fails.store(false, Ordering::Relaxed);
        client.changed().await.unwrap();
        assert!(!polling.is_failing.load(Ordering::Relaxed));
    }
}
