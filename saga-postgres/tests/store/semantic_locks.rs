//! Semantic locks as ordinary reads of the application see them, and what two transactions about one entity do at once.

use std::time::Duration;

use saga_core::Entity;
use saga_core::store::{
    Changes, Claim, LockAnswer, LockFilter, LockRequest, LockState, Records as _, SemanticLocks as _, StoreErrorKind,
    Unlock,
};
use saga_postgres::{PostgresOptions, PostgresStore};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use crate::support::{Place, asks_for, begun};

fn request(claim: &Claim) -> LockRequest {
    asks_for(claim, Entity::new("account", "ada"))
}

type Row = (String, Option<String>, Option<bool>);

#[tokio::test]
async fn the_view_says_what_is_locked_by_whom() {
    let place = Place::new().await;
    let store = place.open().await;
    let mut conn = place.connection().await;
    let (first, second) = (begun(&store, "k-1").await, begun(&store, "k-2").await);
    let answers = store.ask_for_locks(vec![request(&first), request(&second)]).await.unwrap();
    assert!(matches!(answers[..], [LockAnswer::Granted(_), LockAnswer::Waits(_)]), "{answers:?}");
    let sql = format!(
        "SELECT a.id, l.saga_key, l.granted FROM (VALUES ('ada'), ('bob')) AS a(id) \
         LEFT JOIN {}.semantic_locks l ON l.kind = 'account' AND l.id = a.id ORDER BY a.id, l.number",
        place.schema
    );
    let row = |id: &str, key: &str, granted| (id.to_owned(), Some(key.to_owned()), Some(granted));
    let free = ("bob".to_owned(), None, None);
    let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(sql.clone())).fetch_all(&mut conn).await.unwrap();
    assert_eq!(rows, [row("ada", "k-1", true), row("ada", "k-2", false), free.clone()]);
    let unlocked = vec![Unlock::Owner(first.tenant.clone(), first.key.clone())];
    store.record(vec![Changes { unlocked, ..Changes::default() }]).await.unwrap();
    let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(sql)).fetch_all(&mut conn).await.unwrap();
    assert_eq!(rows, [row("ada", "k-2", true), free]);
    store.close().await;
    place.remove().await;
}

const TENANT_LOCK: &str = "SELECT pg_advisory_xact_lock({schema}.entity_lock('', NULL, NULL))";

/// Asks for the account of Ada in the name of a claim, in a transaction of the application.
async fn ask_in(conn: &mut PgConnection, schema: &str, claim: &Claim) -> String {
    let (saga, key, work) = (claim.saga.0, claim.key.as_str(), claim.work.id.0);
    let ask = format!(
        "SELECT answer FROM {schema}.ask_for_locks(ARRAY[''], ARRAY['{key}'], ARRAY[{saga}::bigint], ARRAY['{key}'], \
         ARRAY['held'], ARRAY[{work}::bigint], ARRAY[1::bigint], ARRAY[3600000000::bigint], ARRAY[1], ARRAY[1], \
         ARRAY['account'], ARRAY['ada'])"
    );
    sqlx::query_scalar(AssertSqlSafe(ask)).fetch_one(conn).await.unwrap()
}

fn ends(claim: &Claim) -> Vec<Changes> {
    let unlocked = vec![Unlock::Owner(claim.tenant.clone(), claim.key.clone())];
    vec![Changes { unlocked, ..Changes::default() }]
}

/// Waits until another session waits for a lock of this one.
async fn waits_for(conn: &mut PgConnection) {
    let sql = "SELECT EXISTS (SELECT FROM pg_stat_activity a WHERE pg_backend_pid() = ANY (pg_blocking_pids(a.pid)))";
    while !sqlx::query_scalar::<_, bool>(sql).fetch_one(&mut *conn).await.unwrap() {
        tokio::task::yield_now().await;
    }
}

fn patient(place: &Place) -> PostgresOptions {
    place.options().batch_lock_timeout(Duration::from_mins(10))
}

/// The states of the requests for the account of Ada.
async fn states(store: &PostgresStore, claim: &Claim) -> Vec<LockState> {
    let entity = Some(Entity::new("account", "ada"));
    let filter = LockFilter { tenant: claim.tenant.clone(), saga: None, entity, after: None, limit: 10 };
    store.locks(&filter).await.unwrap().into_iter().map(|lock| lock.state).collect()
}

#[tokio::test]
async fn a_lock_that_nobody_waits_for_needs_no_turn_among_the_sagas_that_wait() {
    let place = Place::new().await;
    let store = place.open().await;
    let (first, second) = (begun(&store, "k-1").await, begun(&store, "k-2").await);
    let mut conn = place.connection().await;
    conn.execute("BEGIN").await.unwrap();
    conn.execute(AssertSqlSafe(TENANT_LOCK.replace("{schema}", &format!("\"{}\"", place.schema)))).await.unwrap();
    let answers = store.ask_for_locks(vec![request(&first)]).await.unwrap();
    assert!(matches!(answers[..], [LockAnswer::Granted(_)]), "{answers:?}");
    // A saga that waits has its turn behind all others that wait.
    let error = store.ask_for_locks(vec![request(&second)]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
    store.record(ends(&first)).await.unwrap();
    assert_eq!(states(&store, &first).await, []);
    conn.execute("ROLLBACK").await.unwrap();
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn a_saga_that_asks_while_the_lock_ends_has_it_afterwards() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(patient(&place)).await.unwrap();
    let (first, second) = (begun(&store, "k-1").await, begun(&store, "k-2").await);
    store.ask_for_locks(vec![request(&first)]).await.unwrap();
    let mut conn = place.connection().await;
    conn.execute("BEGIN").await.unwrap();
    let unlock = format!("SELECT {}.unlock(ARRAY[''], ARRAY['k-1'], ARRAY[NULL::bigint], ARRAY[NULL])", place.schema);
    conn.execute(AssertSqlSafe(unlock)).await.unwrap();
    let asking = tokio::spawn({
        let store = store.clone();
        async move { store.ask_for_locks(vec![request(&second)]).await }
    });
    waits_for(&mut conn).await;
    conn.execute("COMMIT").await.unwrap();
    let answers = asking.await.unwrap().unwrap();
    assert!(matches!(answers[..], [LockAnswer::Granted(_)]), "{answers:?}");
    store.close().await;
    place.remove().await;
}

/// A saga queues for a lock, and the lock ends before that is committed.
async fn lock_ends_behind_a_saga_that_queues(place: &Place, waits: bool) -> Vec<LockState> {
    let store = PostgresStore::connect_with(patient(place)).await.unwrap();
    let (first, second) = (begun(&store, "k-1").await, begun(&store, "k-2").await);
    store.ask_for_locks(vec![request(&first)]).await.unwrap();
    let mut conn = place.connection().await;
    conn.execute("BEGIN").await.unwrap();
    assert_eq!(ask_in(&mut conn, &place.schema, &second).await, "waiting");
    let ending = tokio::spawn({
        let (store, ends) = (store.clone(), ends(&first));
        async move { store.record(ends).await }
    });
    if waits {
        waits_for(&mut conn).await;
        conn.execute("COMMIT").await.unwrap();
        ending.await.unwrap().unwrap();
    } else {
        ending.await.unwrap().unwrap();
        conn.execute("COMMIT").await.unwrap();
    }
    let states = states(&store, &first).await;
    store.close().await;
    states
}

#[tokio::test]
async fn a_lock_that_ends_while_a_saga_queues_for_it_is_handed_over() {
    let place = Place::new().await;
    assert_eq!(lock_ends_behind_a_saga_that_queues(&place, true).await, [LockState::Granted]);
    place.remove().await;
}

#[tokio::test]
async fn without_the_lock_of_the_entity_a_saga_would_wait_for_nobody() {
    let place = Place::new().await;
    place.open().await.close().await;
    place.spoil("unlock", "pg_advisory_xact_lock", "abs").await;
    assert_eq!(lock_ends_behind_a_saga_that_queues(&place, false).await, [LockState::Waiting]);
    place.remove().await;
}

/// How many of eight accounts a call has that asks for all of them, and waits for the last one in the order of their locks.
async fn had_while_it_waits(place: &Place, store: &PostgresStore, claim: &Claim) -> i64 {
    let mut conn = place.connection().await;
    conn.execute("BEGIN").await.unwrap();
    let last = format!(
        "SELECT pg_advisory_xact_lock(max(\"{}\".entity_lock('', 'account', n::text))) FROM generate_series(1, 8) n",
        place.schema
    );
    conn.execute(AssertSqlSafe(last)).await.unwrap();
    let asked = LockRequest { entities: (1..=8).map(|n| Entity::new("account", n)).collect(), ..request(claim) };
    let asking = store.clone();
    let call = tokio::spawn(async move { asking.ask_for_locks(vec![asked]).await });
    waits_for(&mut conn).await;
    let had = "SELECT count(*) FROM pg_locks l \
         WHERE l.locktype = 'advisory' AND l.granted AND pg_backend_pid() = ANY (pg_blocking_pids(l.pid))";
    let had = sqlx::query_scalar(had).fetch_one(&mut conn).await.unwrap();
    conn.execute("COMMIT").await.unwrap();
    let answers = call.await.unwrap().unwrap();
    assert!(matches!(answers[..], [LockAnswer::Granted(_)]), "{answers:?}");
    store.record(ends(claim)).await.unwrap();
    had
}

/// A step transaction that has one account may end the lock of another one. It and a call that had this one, and waited for the first,
/// would wait for each other.
#[tokio::test]
async fn a_call_that_waits_for_an_entity_has_no_other_one() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(patient(&place)).await.unwrap();
    let asking = begun(&store, "k-1").await;
    assert_eq!(had_while_it_waits(&place, &store, &asking).await, 0);
    // A function that locks them one after the other is found.
    let in_order = format!(
        "CREATE OR REPLACE FUNCTION \"{}\".lock_together(p_keys bigint[]) RETURNS void LANGUAGE plpgsql AS $$ \
         BEGIN PERFORM pg_advisory_xact_lock(k.key) FROM unnest(p_keys) AS k(key); END $$",
        place.schema
    );
    place.connection().await.execute(AssertSqlSafe(in_order)).await.unwrap();
    assert_eq!(had_while_it_waits(&place, &store, &asking).await, 7);
    store.close().await;
    place.remove().await;
}

/// What `acquire_locks` answers about each of these requests: nothing where it was not taken, else where it comes from. It waits for so many
/// milliseconds.
async fn taken_in(
    conn: &mut PgConnection,
    schema: &str,
    name: &str,
    requests: &[(Option<i64>, &str)],
    wait: i32,
) -> Vec<String> {
    let sql = format!(
        "SELECT coalesce(CASE WHEN stored THEN 'stored' WHEN waited THEN 'waited' WHEN tokens[1] > 0 THEN 'free' END, '') \
         FROM unnest($2) AS asked(place) LEFT JOIN {schema}.acquire_locks($1, array_fill($5::text, ARRAY[$3]), $2, $2, \
         array_fill(''::text, ARRAY[$3]), array_fill('account'::text, ARRAY[$3]), $4, $6) USING (place) ORDER BY place"
    );
    let count = i32::try_from(requests.len()).unwrap();
    sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(requests.iter().map(|(saga, _)| *saga).collect::<Vec<_>>())
        .bind((1..=count).collect::<Vec<_>>())
        .bind(count)
        .bind(requests.iter().map(|(_, id)| (*id).to_owned()).collect::<Vec<_>>())
        .bind(name)
        .bind(wait)
        .fetch_all(conn)
        .await
        .unwrap()
}

/// A row that names one of the entities makes `acquire_locks` begin again: what it had locked is free for others until it commits.
#[tokio::test]
async fn a_transaction_takes_what_is_free_beside_what_others_have_and_what_is_its_own() {
    let place = Place::new().await;
    let store = place.open().await;
    let (first, second) = (begun(&store, "k-1").await, begun(&store, "k-2").await);
    store.ask_for_locks(vec![request(&first)]).await.unwrap();
    let mut conn = place.connection().await;
    conn.execute("BEGIN").await.unwrap();
    let (own, other, name) = (Some(first.saga.0), Some(second.saga.0), request(&first).name);
    let free = [(other, "bob"), (None, "cara")];
    assert_eq!(taken_in(&mut conn, &place.schema, &name, &free, 1).await, ["free", "free"]);
    conn.execute("ROLLBACK; BEGIN").await.unwrap();
    let mixed = [(other, "ada"), (None, "bob"), (own, "ada")];
    assert_eq!(taken_in(&mut conn, &place.schema, &name, &mixed, 1).await, ["", "free", "stored"]);
    let mut rival = place.connection().await;
    rival.execute("BEGIN").await.unwrap();
    let tried = [(other, "bob"), (None, "cara"), (own, "ada")];
    assert_eq!(taken_in(&mut rival, &place.schema, &name, &tried, 1).await, ["", "free", "stored"]);
    rival.execute("ROLLBACK").await.unwrap();
    conn.execute("ROLLBACK").await.unwrap();
    store.close().await;
    place.remove().await;
}

/// Each takes its entities in the same order, however they were named.
#[tokio::test]
async fn transactions_that_wait_for_an_open_one_do_not_wait_for_each_other() {
    let place = Place::new().await;
    place.open().await.close().await;
    let mut first = place.connection().await;
    first.execute("BEGIN").await.unwrap();
    let both = [(None, "ada"), (None, "bob")];
    assert_eq!(taken_in(&mut first, &place.schema, "held", &both, 1).await, ["free", "free"]);
    let wait_for_both = async |both: [(Option<i64>, &str); 2]| {
        let mut conn = place.connection().await;
        conn.execute("BEGIN").await.unwrap();
        let taken = taken_in(&mut conn, &place.schema, "held", &both, 600_000).await;
        conn.execute("COMMIT").await.unwrap();
        taken
    };
    let until_both_wait = async {
        let waiting =
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
        while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut first).await.unwrap() < 2 {
            tokio::task::yield_now().await;
        }
        first.execute("COMMIT").await.unwrap();
    };
    let [ada, bob] = both;
    let (one, other, ()) = tokio::join!(wait_for_both([ada, bob]), wait_for_both([bob, ada]), until_both_wait);
    assert_eq!((one, other), (vec!["waited".to_owned(); 2], vec!["waited".to_owned(); 2]));
    place.remove().await;
}

/// An owner that has the entity already gets it for its other requests before the queue, and the queue is served in its order.
#[tokio::test]
async fn a_lock_that_ends_is_handed_to_the_first_of_the_queue_and_to_all_its_requests() {
    let place = Place::new().await;
    let store = place.open().await;
    let mut claims = Vec::new();
    for key in ["k-1", "k-2", "k-3"] {
        claims.push(begun(&store, key).await);
    }
    let again = |claim: &Claim| LockRequest { name: "again".to_owned(), ..request(claim) };
    let asked = [request(&claims[0]), request(&claims[1]), again(&claims[1]), request(&claims[2])];
    let answers = store.ask_for_locks(asked.to_vec()).await.unwrap();
    assert!(answers[1..].iter().all(|answer| matches!(answer, LockAnswer::Waits(_))), "{answers:?}");
    store.record(ends(&claims[0])).await.unwrap();
    let (granted, waits) = (LockState::Granted, LockState::Waiting);
    assert_eq!(states(&store, &claims[0]).await, [granted.clone(), granted.clone(), waits]);
    store.record(ends(&claims[1])).await.unwrap();
    assert_eq!(states(&store, &claims[0]).await, [granted]);
    store.record(ends(&claims[2])).await.unwrap();
    assert_eq!(states(&store, &claims[0]).await, []);
    store.close().await;
    place.remove().await;
}
