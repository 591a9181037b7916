//! Operations of many callers share transactions on PostgreSQL, and do not wait for what others have locked.

use saga_reservations::{
    Action, Late, Operation, Reason, Reservation, ReservationKey, Reservations, ReservationsError, Reserve,
    ResourceName, SqlReservations,
};
use saga_servers::shared::Database;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, PgPool};
use tokio::task::JoinSet;

struct Place {
    store: SqlReservations,
    rows: PgPool,
    database: Database,
}

impl Place {
    /// So many seats and bags.
    async fn with(units: u64) -> Self {
        let database = saga_servers::shared::database("reservations").await.unwrap();
        let store = SqlReservations::connect_postgres(database.url()).await.unwrap();
        for name in ["bag", "seat"] {
            store.set_capacity(&ResourceName::new(name).unwrap(), units).await.unwrap();
        }
        Self { store, rows: PgPool::connect(database.url()).await.unwrap(), database }
    }

    /// How many transactions wrote the reservations whose keys are like this.
    async fn transactions(&self, keys: &str) -> i64 {
        let sql = "SELECT count(DISTINCT xmin::text) FROM reservations WHERE key LIKE $1";
        sqlx::query_scalar(sql).bind(keys).fetch_one(&self.rows).await.unwrap()
    }

    async fn seats(&self) -> (u64, u64) {
        let seats = self.store.resource(&ResourceName::new("seat").unwrap()).await.unwrap().unwrap();
        (seats.confirmed, seats.held)
    }
}

fn key(name: impl Into<String>) -> ReservationKey {
    ReservationKey::new(name).unwrap()
}

fn reserve(name: impl Into<String>, request: Reserve) -> Operation {
    Operation::new(key(name), Action::Reserve(request))
}

/// The operations are asked for at the same time, by tasks of their own.
async fn at_once(
    store: &SqlReservations,
    operations: impl IntoIterator<Item = Operation>,
) -> Vec<Result<Reservation, ReservationsError>> {
    let mut asking = JoinSet::new();
    for operation in operations {
        let store = store.clone();
        asking.spawn(async move { store.perform(operation).await });
    }
    asking.join_all().await
}

#[tokio::test]
async fn operations_at_once_share_a_transaction() {
    let place = Place::with(1_000).await;
    let held = at_once(&place.store, (0..40).map(|n| reserve(format!("seat-{n}"), Reserve::of("seat", 1)))).await;
    let held: Vec<Reservation> = held.into_iter().map(Result::unwrap).collect();
    assert_eq!((place.transactions("seat-%").await, place.seats().await), (1, (0, 40)));
    let mut tokens: Vec<u64> = held.iter().map(|held| held.token.0).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, (1..=40).collect::<Vec<_>>());

    // Confirmations, a new request, and some that are refused: what is refused does not hinder the others.
    let confirm = |held: &Reservation| Action::Confirm { token: held.token, late: Late::Refuse };
    let mut operations: Vec<_> = held.iter().map(|held| Operation::new(held.key.clone(), confirm(held))).collect();
    operations.push(reserve("seat-new", Reserve::of("seat", 2).and("bag", 1)));
    operations.push(reserve("seat-none", Reserve::of("meal", 1)));
    operations.push(Operation::new(key("unknown"), confirm(&held[0])));
    operations.push(reserve("sign-up", Reserve::unique("sign-up", "ada")));
    let answers = at_once(&place.store, operations).await;
    let mut refused: Vec<_> = answers
        .iter()
        .filter_map(|answer| answer.as_ref().err())
        .map(|error| error.refusal().unwrap().reason())
        .collect();
    refused.sort_by_key(|reason| reason.as_str());
    assert_eq!(refused, [Reason::NotFound, Reason::NotFound]);
    assert_eq!((place.transactions("s%").await, place.seats().await), (1, (40, 2)));
}

/// A commit is written to the disk, also where it only gives locks back.
#[tokio::test]
async fn where_all_is_refused_nothing_is_committed() {
    let place = Place::with(2).await;
    // What the transaction that locked the seats last, or changed them, came to.
    let last = || async {
        let sql = "SELECT pg_xact_status(xmax::text::xid8) FROM reservation_resources WHERE name = 'seat'";
        sqlx::query_scalar::<_, Option<String>>(sql).fetch_one(&place.rows).await.unwrap()
    };
    place.store.perform(reserve("ada", Reserve::of("seat", 1))).await.unwrap();
    let other_lines = || reserve("ada", Reserve::of("seat", 1).and("bag", 1));
    let refused = at_once(&place.store, [other_lines(), reserve("eve", Reserve::of("seat", 1).and("meal", 1))]).await;
    assert!(refused.iter().all(|answer| answer.as_ref().is_err_and(|error| error.refusal().is_some())));
    assert_eq!(last().await.as_deref(), Some("aborted"));

    // One that is carried out is committed, also beside one that is refused.
    let mixed = at_once(&place.store, [other_lines(), reserve("joe", Reserve::of("seat", 1))]).await;
    assert_eq!(mixed.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(place.seats().await, (0, 2));

    // Holds that are ended for a request which is refused all the same have ended.
    sqlx::query("UPDATE reservations SET expires_at = 1").execute(&place.rows).await.unwrap();
    let refused = place.store.perform(reserve("bob", Reserve::of("seat", 3))).await.unwrap_err();
    assert_eq!(refused.refusal().unwrap().reason(), Reason::Insufficient);
    assert_eq!(place.seats().await, (0, 0));
}

/// Where each statement is planned anew, that takes longer than it runs. Behind PgBouncer there is no other way.
#[tokio::test]
async fn statements_stay_prepared_unless_the_pool_keeps_none() {
    let database = saga_servers::shared::database("reservations").await.unwrap();
    for (url, capacity) in [(database.url().to_owned(), 100), (database.pgbouncer_url().unwrap(), 0)] {
        let options = url.parse::<PgConnectOptions>().unwrap().extra_float_digits(None);
        let options = options.statement_cache_capacity(capacity);
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
        let store = SqlReservations::on_postgres(pool.clone()).await.unwrap();
        store.set_capacity(&ResourceName::new("seat").unwrap(), 9).await.unwrap();
        for number in 0..3 {
            store.perform(reserve(format!("{capacity}-{number}"), Reserve::of("seat", 1))).await.unwrap();
        }
        assert_eq!(pool.acquire().await.unwrap().cached_statements_size() > 1, capacity > 0);
    }
}

/// Where a transaction waited for a lock, PostgreSQL looks at each row again.
#[tokio::test]
async fn what_was_waited_for_is_found_again() {
    let place = Place::with(10).await;
    let mut other = place.rows.begin().await.unwrap();
    let changed = "UPDATE reservation_resources SET version = version + 1";
    assert_eq!(sqlx::query(changed).execute(&mut *other).await.unwrap().rows_affected(), 2);
    let store = place.store.clone();
    let both = reserve("both", Reserve::of("seat", 1).and("bag", 1));
    let reserving = tokio::spawn(async move { store.perform(both).await });
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&place.rows).await.unwrap() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    other.commit().await.unwrap();
    reserving.await.unwrap().expect("there are both, and enough of them");
    assert_eq!(place.seats().await, (0, 1));
}

/// PostgreSQL would keep a plan that reads all reservations there ever were, for it believes that a list of keys is long.
#[tokio::test]
async fn rows_are_found_by_their_keys_only() {
    let database = saga_servers::shared::database("reservations").await.unwrap();
    // One connection, which tells the server at once what it has read.
    let pool = PgPoolOptions::new().max_connections(1).connect(database.url()).await.unwrap();
    let store = SqlReservations::on_postgres(pool.clone()).await.unwrap();
    // With its statistics the server would know that the tables of this test are small, and that reading all of them costs least.
    for table in ["reservations", "reservation_resources"] {
        let sql = format!("ALTER TABLE {table} SET (autovacuum_enabled = false)");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&pool).await.unwrap();
    }
    for number in 0..200 {
        store.set_capacity(&ResourceName::new(format!("seat/{number}")).unwrap(), 9).await.unwrap();
    }
    let whole_tables_read = || async {
        sqlx::query("SELECT pg_stat_force_next_flush()").execute(&pool).await.unwrap();
        let sql = "SELECT sum(seq_scan)::bigint FROM pg_stat_user_tables WHERE relname LIKE 'reservation%'";
        sqlx::query_scalar::<_, i64>(sql).fetch_one(&pool).await.unwrap()
    };
    let before = whole_tables_read().await;
    for round in 0..8 {
        let seats = (0..40).map(|n| reserve(format!("{round}-{n}"), Reserve::of(format!("seat/{n}"), 1)));
        let held = at_once(&store, seats).await.into_iter().map(Result::unwrap);
        let confirm = |held: &Reservation| Action::Confirm { token: held.token, late: Late::Refuse };
        let confirmations: Vec<_> = held.map(|held| Operation::new(held.key.clone(), confirm(&held))).collect();
        assert!(at_once(&store, confirmations).await.iter().all(Result::is_ok));
    }
    assert_eq!(whole_tables_read().await, before);
}

#[tokio::test]
async fn what_is_locked_hinders_nothing_else_and_waits_together() {
    let place = Place::with(1_000).await;
    let mut other = place.rows.begin().await.unwrap();
    let lock = "SELECT 1 FROM reservation_resources WHERE name = 'seat' FOR UPDATE";
    sqlx::query(lock).execute(&mut *other).await.unwrap();
    let store = place.store.clone();
    let seats = tokio::spawn(async move {
        at_once(&store, (0..40).map(|n| reserve(format!("seat-{n}"), Reserve::of("seat", 1)))).await
    });
    place.store.perform(reserve("bag", Reserve::of("bag", 1))).await.unwrap();
    let both = Reserve::of("bag", 1).and("seat", 1);
    let both = tokio::spawn({
        let store = place.store.clone();
        async move { store.perform(reserve("both", both)).await }
    });
    place.store.perform(reserve("bag-2", Reserve::of("bag", 1))).await.unwrap();
    assert!(!seats.is_finished() && !both.is_finished());
    other.rollback().await.unwrap();
    assert!(seats.await.unwrap().iter().all(Result::is_ok));
    both.await.unwrap().unwrap();
    assert_eq!((place.transactions("seat-%").await, place.seats().await), (1, (0, 41)));
}

/// R-CAPACITY: the callers of two processes want more than there is, some of it twice.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_take_what_there_is() {
    let place = Place::with(50).await;
    let stores = [place.store.clone(), SqlReservations::connect_postgres(place.database.url()).await.unwrap()];
    let mut asking = JoinSet::new();
    for number in 0..120 {
        let store = stores[number % 2].clone();
        // Each key is asked for twice, mostly by both of them.
        let operation = reserve(format!("seat-{}", number / 2), Reserve::of("seat", 1));
        asking.spawn(async move { store.perform(operation).await });
    }
    let answers = asking.join_all().await;
    let (held, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!((held.len(), refused.len()), (100, 20));
    let reasons = refused.into_iter().map(|answer| answer.unwrap_err().refusal().unwrap().reason());
    assert!(reasons.into_iter().all(|reason| reason == Reason::Insufficient));
    assert_eq!(place.seats().await, (0, 50));
}
