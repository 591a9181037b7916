use std::time::Duration;

use saga_cli::OpenStore as _;
use saga_core::{
    engine::{DeadLetterAdmin, OutboxAdmin, SagaAdmin, SagaQuery},
    store::{DeadLetterFilter, SagaFilter, Status, Store},
};
use saga_postgres::PostgresStore;
use saga_sqlite::SqliteStore;
use tokio::time::Instant;

use super::{Finding, OrderSaga};
use crate::place::{Place as _, PostgresPlace, SqlitePlace, StoreUrl};

/// How often it is looked again while something is under way.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// More is not named one by one.
const NAMED_MAX: usize = 10_000;

/// The runtime's side of a store, opened to look only.
pub(super) struct Looked {
    store: AnyStore,
    /// Where it is, if there are several.
    place: Option<String>,
}

enum AnyStore {
    Sqlite(SqliteStore, SqlitePlace),
    Postgres(PostgresStore, PostgresPlace),
}

/// What keeps a store from being at rest.
#[derive(Debug, Default)]
struct Unrest {
    findings: Vec<Finding>,
    /// Whether it may come to rest by itself.
    is_under_way: bool,
    place: Option<String>,
}

impl Looked {
    /// Opens the stores, the first of which needs no name.
    pub(super) async fn open_all(urls: &[String]) -> anyhow::Result<Vec<Self>> {
        let mut stores = Vec::new();
        for url in urls {
            let (store, shown) = match StoreUrl::parse(url)? {
                StoreUrl::Sqlite(place) => {
                    let shown = place.name();
                    (AnyStore::Sqlite(place.open_read_only().await?, place), shown)
                }
                StoreUrl::Postgres(place) => {
                    let shown = place.name();
                    (AnyStore::Postgres(place.open_read_only().await?, place), shown)
                }
            };
            stores.push(Self { store, place: (!stores.is_empty()).then_some(shown) });
        }
        Ok(stores)
    }

    /// What its runtime says of orders, or has said before it purged them.
    pub(super) async fn order_sagas(&self) -> anyhow::Result<Vec<OrderSaga>> {
        match &self.store {
            AnyStore::Sqlite(store, place) => OrderSaga::all(store, place.archived().await?).await,
            AnyStore::Postgres(store, place) => OrderSaga::all(store, place.archived().await?).await,
        }
    }

    async fn look(&self, unrest: &mut Unrest) -> anyhow::Result<()> {
        unrest.place.clone_from(&self.place);
        match &self.store {
            AnyStore::Sqlite(store, _) => unrest.look(store).await,
            AnyStore::Postgres(store, _) => unrest.look(store).await,
        }
    }
}

/// What keeps the stores from being at rest, after what is under way in them had some time to end.
pub(super) async fn unrest(stores: &[Looked], within: Duration) -> anyhow::Result<Vec<Finding>> {
    let until = Instant::now() + within;
    loop {
        let mut unrest = Unrest::default();
        for store in stores {
            store.look(&mut unrest).await?;
        }
        if !unrest.is_under_way || Instant::now() >= until {
            return Ok(unrest.findings);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Unrest {
    async fn look<S: Store + Clone>(&mut self, store: &S) -> anyhow::Result<()> {
        self.look_at_sagas(&SagaAdmin::new(store.clone()).query()).await?;
        self.look_at_work(store).await?;
        self.look_at_outbox(&SagaAdmin::new(store.clone()).outbox()).await?;
        self.look_at_letters(&SagaAdmin::new(store.clone()).dead_letters()).await
    }

    async fn look_at_sagas(&mut self, inspector: &SagaQuery<impl Store>) -> anyhow::Result<()> {
        for status in Status::ALL.into_iter().filter(|status| !status.is_ended()) {
            let filter = SagaFilter { status: Some(status), limit: usize::MAX, ..SagaFilter::default() };
            for saga in inspector.list(filter).await? {
                self.is_under_way |= !matches!(status, Status::Stuck | Status::Paused);
                self.find(saga.key.as_str(), format!("its saga is {status}"));
            }
        }
        for saga in inspector.orphaned(NAMED_MAX).await? {
            self.find(
                &format!("saga {}", saga.0),
                "it waits for nothing, so that no process goes on with it".to_owned(),
            );
        }
        Ok(())
    }

    async fn look_at_work(&mut self, store: &impl Store) -> anyhow::Result<()> {
        let (rows, due) = store.backlog().await?;
        if rows > 0 {
            self.is_under_way = true;
            let due = due.map(|due| format!(", one has been due for {:.3} s", due.as_secs_f64())).unwrap_or_default();
            self.find("work", format!("{rows} of its rows wait to be done{due}"));
        }
        Ok(())
    }

    async fn look_at_outbox(&mut self, outbox: &OutboxAdmin<impl Store>) -> anyhow::Result<()> {
        let (depth, parked) = (outbox.depth().await?, outbox.parked().await?);
        if depth.rows > 0 {
            // Behind a key that waits for a person nothing moves by itself.
            let waits = parked.iter().filter(|key| key.retry_at.is_none()).count();
            self.is_under_way |= depth.rows > waits as u64;
            let age = depth.oldest_age.unwrap_or_default().as_secs_f64();
            self.find("outbox", format!("{} messages wait to be sent, the oldest for {age:.3} s", depth.rows));
        }
        for key in parked {
            self.find(
                &format!("message {}", key.message),
                format!("it could not be sent in {} attempts: {}", key.attempts, key.error),
            );
        }
        Ok(())
    }

    async fn look_at_letters(&mut self, letters: &DeadLetterAdmin<impl Store>) -> anyhow::Result<()> {
        let filter = DeadLetterFilter { limit: NAMED_MAX, ..DeadLetterFilter::default() };
        for letter in letters.list(filter).await? {
            let letter = letter.letter;
            let wrong = format!("it is open, {}: {}", letter.reason.as_str(), letter.detail);
            self.find(&format!("dead letter {}", letter.id.0), wrong);
        }
        Ok(())
    }

    fn find(&mut self, subject: &str, wrong: String) {
        let wrong = match &self.place {
            Some(place) => format!("{wrong} (in {place})"),
            None => wrong,
        };
        self.findings.push(Finding { subject: subject.to_owned(), wrong });
    }
}
