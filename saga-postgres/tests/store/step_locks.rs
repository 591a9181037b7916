//! A transactional step whose lock others have: its transaction waits for short ones, and else it asks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::engine::StepStatus;
use saga_core::{Entity, Outcome, Runtime, Saga, SagaHandle, State, StepContext, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::support::{Place, write_note};

type Input = (String, String);

fn account(input: &Input) -> Entity {
    Entity::new("account", &input.0)
}

/// How long the latest call of `book` took.
#[derive(Clone, Default)]
struct Took(Arc<Mutex<Duration>>);

#[saga_step(no_compensation, lock = |input: &Input| account(input))]
async fn book(tx: &mut PgConnection, input: Input, State(took): State<Took>) -> Result<(), StepError> {
    let begun = Instant::now();
    write_note(tx, &input.1).await?;
    *took.0.lock().unwrap() = begun.elapsed();
    Ok(())
}

/// A step that takes twice as long is slow for the runtime, and tries nothing.
const QUICK: Duration = Duration::from_millis(10);

/// A call outside, which has its lock until the test lets it end.
#[saga_step(no_compensation, lock = |input: &Input| account(input), timeout = "10m")]
async fn hold(ctx: &StepContext, _input: Input, State(gate): State<Arc<Semaphore>>) -> Result<(), StepError> {
    tokio::select! {
        _permit = gate.acquire() => Ok(()),
        () = ctx.cancelled() => Err(StepError::retry("the process ends")),
    }
}

struct Bank {
    place: Place,
    runtime: Runtime<PostgresStore>,
    booking: Saga<PostgresStore, Input>,
    holding: Saga<PostgresStore, Input>,
    gate: Arc<Semaphore>,
    conn: PgConnection,
}

impl Bank {
    /// A bank whose only worker knows that `book` is quick. Each request that is stored from now on leaves a note.
    async fn new() -> Self {
        Self::with(Duration::from_mins(10)).await
    }

    /// The same whose transactions wait no longer than that for locks.
    async fn with(lock_timeout: Duration) -> Self {
        let place = Place::new().await;
        let store = PostgresStore::connect_with(place.options().batch_lock_timeout(lock_timeout)).await;
        let booking = Saga::named("booking").input::<Input>().step::<book>().build().unwrap();
        let holding = Saga::named("holding").input::<Input>().step::<hold>().build().unwrap();
        let (gate, took) = (Arc::new(Semaphore::new(0)), Took::default());
        let runtime = Runtime::builder(store.unwrap()).saga(&booking).saga(&holding).state(Arc::clone(&gate));
        let runtime =
            runtime.state(took.clone()).settings(|settings| settings.transactions_max = 1).start().await.unwrap();
        let conn = place.connection().await;
        let mut bank = Self { place, runtime, booking, holding, gate, conn };
        // On a busy machine it may be slow at first.
        for number in 0.. {
            bank.books(&format!("first-{number}"), "bob").await;
            if *took.0.lock().unwrap() < QUICK {
                break;
            }
        }
        bank.execute(
            "DELETE FROM notes; \
             CREATE FUNCTION {schema}.note_request() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 INSERT INTO notes (text) VALUES (NEW.key || ' asks'); RETURN NULL; END $$; \
             CREATE TRIGGER note_request AFTER INSERT ON {schema}.lock_requests \
                 FOR EACH ROW EXECUTE FUNCTION {schema}.note_request()",
        )
        .await;
        bank
    }

    async fn execute(&mut self, sql: &str) {
        let sql = sql.replace("{schema}", &self.place.schema);
        self.conn.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
    }

    async fn start(&self, saga: &Saga<PostgresStore, Input>, key: &str, account: &str) -> SagaHandle<PostgresStore> {
        self.runtime.start(saga, key, (account.to_owned(), key.to_owned())).await.unwrap()
    }

    async fn books(&self, key: &str, account: &str) {
        completes(self.start(&self.booking, key, account).await).await;
    }

    async fn until(&self, key: &str, is_there: impl Fn(&StepStatus) -> bool) -> StepStatus {
        loop {
            let status = self.runtime.status(key).await.unwrap().unwrap();
            match status.steps.into_iter().find(|step| is_there(step)) {
                Some(step) => return step,
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// How many rows keep requests and entities.
    async fn lock_rows(&mut self) -> i64 {
        let count = format!(
            "SELECT (SELECT count(*) FROM {0}.lock_requests) + (SELECT count(*) FROM {0}.locked_entities)",
            self.place.schema
        );
        sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(&mut self.conn).await.unwrap()
    }

    /// Every saga has ended.
    async fn close(mut self) -> Vec<String> {
        assert_eq!(self.lock_rows().await, 0);
        self.runtime.shutdown().await;
        let notes = self.place.notes().await;
        self.place.remove().await;
        notes
    }
}

async fn completes(saga: SagaHandle<PostgresStore>) {
    let outcome = saga.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
}

/// Another transaction has the entity while the saga starts, until a session waits for it with such a statement. Answers the notes.
async fn behind_a_transaction(lock_timeout: Duration, statement: &str) -> Vec<String> {
    let bank = Bank::with(lock_timeout).await;
    let mut other = bank.place.connection().await;
    let entity = format!("SELECT pg_advisory_xact_lock({}.entity_lock('', 'step:account', 'ada'))", bank.place.schema);
    other.execute(sqlx::raw_sql(AssertSqlSafe(format!("BEGIN; {entity}")))).await.unwrap();
    let start = bank.runtime.start(&bank.booking, "o-1", ("ada".to_owned(), "o-1".to_owned()));
    let until_it_waits = async {
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)) \
             AND strpos(query, $1) > 0)";
        while !sqlx::query_scalar::<_, bool>(waits).bind(statement).fetch_one(&mut other).await.unwrap() {
            // Within a transaction the activity is read once.
            other.execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
        }
        other.execute("COMMIT").await.unwrap();
    };
    let (saga, ()) = tokio::join!(start, until_it_waits);
    completes(saga.unwrap()).await;
    let status = bank.runtime.status("o-1").await.unwrap().unwrap();
    assert_eq!(status.steps[0].attempts, 1);
    bank.close().await
}

/// S-LOCK-10: a transaction waits for the short one that has its entity, and no request is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_waits_for_another_one_that_has_its_entity() {
    assert_eq!(behind_a_transaction(Duration::from_mins(10), "acquire_locks").await, ["o-1"]);
}

/// It does not wait for long. Then the step asks, and waits in its order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_whose_transaction_waited_for_too_long_asks() {
    assert_eq!(behind_a_transaction(Duration::from_millis(20), "ask_for_locks").await, ["o-1 asks", "o-1"]);
}

/// S-LOCK-4: a row has the entity. The step asks, waits without its worker, and is called when the lock is handed over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_whose_entity_a_row_has_asks_and_waits() {
    let mut bank = Bank::new().await;
    let holder = bank.start(&bank.holding, "o-1", "ada").await;
    bank.until("o-1", |step| step.lock.as_ref().is_some_and(|lock| lock.granted)).await;
    let waiting = bank.start(&bank.booking, "o-2", "ada").await;
    let step = bank.until("o-2", |step| step.lock.as_ref().is_some_and(|lock| !lock.granted)).await;
    assert_eq!(step.attempts, 0);
    let leased = format!("SELECT count(*) FROM {}.work WHERE owner IS NOT NULL", bank.place.schema);
    let leased: i64 = sqlx::query_scalar(AssertSqlSafe(leased)).fetch_one(&mut bank.conn).await.unwrap();
    assert_eq!(leased, 1, "the row of the call that has the lock");
    let open = "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND xact_start IS NOT NULL \
         AND EXISTS (SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE l.pid = pg_stat_activity.pid \
             AND c.relname = 'lock_requests' AND c.relnamespace = $1::text::regnamespace)";
    while sqlx::query_scalar::<_, i64>(open).bind(&bank.place.schema).fetch_one(&mut bank.conn).await.unwrap() > 0 {
        tokio::task::yield_now().await;
    }
    // There is one worker, and it is free.
    bank.books("o-3", "bob").await;
    bank.gate.add_permits(1);
    completes(holder).await;
    completes(waiting).await;
    let status = bank.runtime.status("o-2").await.unwrap().unwrap();
    assert_eq!(status.steps[0].attempts, 1);
    assert_eq!(bank.close().await, ["o-1 asks", "o-2 asks", "o-3", "o-2"]);
}
