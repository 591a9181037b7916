//! A transactional step that is refused its lock: another transaction tries once more before it asks.

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
        let place = Place::new().await;
        let store = PostgresStore::connect_with(place.options().batch_lock_timeout(Duration::from_mins(10))).await;
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

async fn pid_of(conn: &mut PgConnection) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(conn).await.unwrap()
}

/// Waits until a session waits for one of these, and answers for which.
async fn first_blocker(conn: &mut PgConnection, pids: [i32; 2]) -> i32 {
    let sql =
        "SELECT b.pid FROM unnest($1::int[]) AS b(pid), pg_stat_activity a WHERE b.pid = ANY (pg_blocking_pids(a.pid))";
    loop {
        match sqlx::query_scalar(sql).bind(pids.to_vec()).fetch_optional(&mut *conn).await.unwrap() {
            Some(pid) => return pid,
            None => tokio::task::yield_now().await,
        }
    }
}

/// The transactions that try to take the lock: the one that starts the saga, the one of its command, and the one that tries once more.
const TRIES: u32 = 3;

/// Another transaction has the entity while the saga starts, until the given try, which waits for the test before it looks. Answers the
/// notes, and whether there was such a try before the step asked.
async fn free_before_try(number: u32) -> (Vec<String>, bool) {
    let mut bank = Bank::new().await;
    bank.execute("CREATE SEQUENCE {schema}.tries").await;
    let schema = &bank.place.schema;
    // Other tests in the database have gates of their own.
    let key = format!("pg_advisory_xact_lock(hashtext('{schema}'))");
    let gate = format!(
        "v_asked int[] := '{{}}'; v_gate text := CASE WHEN nextval('{schema}.tries') = {number} THEN {key}::text END;"
    );
    bank.place.spoil("take_locks", "v_asked int[] := '{}';", &gate).await;
    let mut gatekeeper = bank.place.connection().await;
    gatekeeper.execute(sqlx::raw_sql(AssertSqlSafe(format!("BEGIN; SELECT {key}")))).await.unwrap();
    let mut other = bank.place.connection().await;
    let entity = format!("SELECT pg_advisory_xact_lock({}.entity_lock('', 'step:account', 'ada'))", bank.place.schema);
    other.execute(sqlx::raw_sql(AssertSqlSafe(format!("BEGIN; {entity}")))).await.unwrap();
    let saga = bank.start(&bank.booking, "o-1", "ada").await;
    let at_the_gate = pid_of(&mut gatekeeper).await;
    let pids = [at_the_gate, pid_of(&mut other).await];
    let tries = first_blocker(&mut bank.conn, pids).await == at_the_gate;
    other.execute("COMMIT").await.unwrap();
    gatekeeper.execute("COMMIT").await.unwrap();
    completes(saga).await;
    let status = bank.runtime.status("o-1").await.unwrap().unwrap();
    assert_eq!(status.steps[0].attempts, 1);
    (bank.close().await, tries)
}

/// S-LOCK-10: a step that is refused its lock by a short transaction takes it in another one, and no request is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_is_refused_its_lock_tries_once_more() {
    assert_eq!(free_before_try(TRIES).await, (vec!["o-1".to_owned()], true));
}

/// It tries no more than that: the call that asks waits for the other transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_is_refused_its_lock_again_asks() {
    assert_eq!(free_before_try(TRIES + 1).await, (vec!["o-1 asks".to_owned(), "o-1".to_owned()], false));
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
