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
    if input.1 == GATED {
        sqlx::query("SELECT pg_advisory_xact_lock(hashtext($1))").bind(&input.0).execute(&mut *tx).await?;
    }
    *took.0.lock().unwrap() = begun.elapsed();
    Ok(())
}

/// The step that follows in the same transaction.
#[saga_step(no_compensation, lock = |input: &Input| account(input))]
async fn confirm(_tx: &mut PgConnection, _input: Input) -> Result<(), StepError> {
    Ok(())
}

/// A step without a lock.
#[saga_step(no_compensation)]
async fn look(_tx: &mut PgConnection, _input: Input) -> Result<(), StepError> {
    Ok(())
}

/// The saga whose step waits for a lock of the test, which has the name of its account.
const GATED: &str = "gated";

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
    touring: Saga<PostgresStore, Input>,
    looking: Saga<PostgresStore, Input>,
    gate: Arc<Semaphore>,
    conn: PgConnection,
}

impl Bank {
    /// A bank whose only worker knows that `book` is quick. Each request that is stored from now on leaves a note.
    async fn new() -> Self {
        Self::with(Duration::from_mins(10), 1).await
    }

    /// The same with so many workers, whose transactions wait no longer than that for locks.
    async fn with(lock_timeout: Duration, workers: usize) -> Self {
        let place = Place::new().await;
        let store = PostgresStore::connect_with(place.options().batch_lock_timeout(lock_timeout)).await;
        let booking = Saga::named("booking").input::<Input>().step::<book>().build().unwrap();
        let holding = Saga::named("holding").input::<Input>().step::<hold>().build().unwrap();
        let touring = Saga::named("touring").input::<Input>();
        let touring = touring.step_from::<book, _>(|input: &Input| input.clone());
        let touring = touring.step_from::<confirm, _>(|input: &Input| input.clone()).build().unwrap();
        let looking = Saga::named("looking").input::<Input>().step::<look>().build().unwrap();
        let (gate, took) = (Arc::new(Semaphore::new(0)), Took::default());
        let runtime = Runtime::builder(store.unwrap()).saga(&booking).saga(&holding);
        let runtime = runtime.saga(&touring).saga(&looking).state(Arc::clone(&gate)).state(took.clone());
        let runtime = runtime.settings(|settings| settings.transactions_max = workers).start().await.unwrap();
        let conn = place.connection().await;
        let mut bank = Self { place, runtime, booking, holding, touring, looking, gate, conn };
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

/// Waits until a session waits for this one, which is in a transaction, with such a statement.
async fn until_it_waits(conn: &mut PgConnection, statement: &str) {
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)) \
         AND strpos(query, $1) > 0)";
    while !sqlx::query_scalar::<_, bool>(waits).bind(statement).fetch_one(&mut *conn).await.unwrap() {
        // Within a transaction the activity is read once.
        conn.execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
    }
}

/// Another transaction has the entity while the saga starts, until a session waits for it with such a statement.
async fn behind_a_transaction(bank: &Bank, saga: &Saga<PostgresStore, Input>, statement: &str) {
    let mut other = bank.place.connection().await;
    let entity = format!("SELECT pg_advisory_xact_lock({}.entity_lock('', 'step:account', 'ada'))", bank.place.schema);
    other.execute(sqlx::raw_sql(AssertSqlSafe(format!("BEGIN; {entity}")))).await.unwrap();
    let commit = async {
        until_it_waits(&mut other, statement).await;
        other.execute("COMMIT").await.unwrap();
    };
    let (saga, ()) = tokio::join!(bank.start(saga, "o-1", "ada"), commit);
    completes(saga).await;
    let status = bank.runtime.status("o-1").await.unwrap().unwrap();
    assert_eq!(status.steps[0].attempts, 1);
}

/// S-LOCK-10: a transaction waits for the short one that has its entity, and no request is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_waits_for_another_one_that_has_its_entity() {
    let bank = Bank::new().await;
    behind_a_transaction(&bank, &bank.booking, "acquire_locks").await;
    assert_eq!(bank.close().await, ["o-1"]);
}

/// It does not wait for long. Then the step asks, and waits in its order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_whose_transaction_waited_for_too_long_asks() {
    let bank = Bank::with(Duration::from_millis(20), 1).await;
    behind_a_transaction(&bank, &bank.booking, "ask_for_locks").await;
    assert_eq!(bank.close().await, ["o-1 asks", "o-1"]);
}

/// Else the second one would often wait for the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_of_which_one_has_waited_run_one_transaction_at_a_time() {
    let bank = Bank::with(Duration::from_mins(10), 2).await;
    behind_a_transaction(&bank, &bank.touring, "acquire_locks").await;
    let mut gatekeeper = bank.place.connection().await;
    gatekeeper.execute("BEGIN").await.unwrap();
    let close = "SELECT pg_advisory_xact_lock(hashtext($1))";
    sqlx::query(close).bind(&bank.place.schema).execute(&mut gatekeeper).await.unwrap();
    let gated = async { completes(bank.start(&bank.touring, GATED, &bank.place.schema).await).await };
    let (behind, meanwhile) = (tokio::sync::Notify::new(), tokio::sync::Notify::new());
    let next = async {
        behind.notified().await;
        meanwhile.notify_one();
        completes(bank.start(&bank.touring, "o-2", "bob").await).await;
    };
    let look = async {
        until_it_waits(&mut gatekeeper, "hashtext").await;
        behind.notify_one();
        meanwhile.notified().await;
        // The other worker is free.
        for number in 0..5 {
            completes(bank.start(&bank.looking, &format!("look-{number}"), "cara").await).await;
        }
        assert_eq!(bank.place.notes().await, ["o-1"], "the step runs beside one that has not ended");
        gatekeeper.execute("COMMIT").await.unwrap();
    };
    tokio::join!(gated, next, look);
    // The step counts as slow if the gate was closed for long, and then the next one asks.
    let notes = bank.close().await;
    assert_eq!(notes.iter().filter(|note| *note != "o-2 asks").collect::<Vec<_>>(), ["o-1", GATED, "o-2"]);
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
