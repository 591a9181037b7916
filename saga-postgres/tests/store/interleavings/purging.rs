//! A purge beside others who work on the same rows: it gives way, and takes a family whole or not at all.

use std::time::Duration;

use saga_core::key::{Key, Tenant};
use saga_core::store::{
    Changes, ExpiredSaga, Expiry, HistoryEntry, HistoryKind, Members as _, Purge as _, Purged, Records as _, SagaId,
    Sagas as _, Started, StoreErrorKind,
};
use saga_postgres::PostgresStore;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use crate::support::{Place, begun, completed, new_saga};

const HOUR: Duration = Duration::from_hours(1);

/// Sagas of these keys that have ended and are due, and the epoch under which they may be purged.
async fn due(store: &PostgresStore, keys: &[&str]) -> (u64, Vec<ExpiredSaga>) {
    for key in keys {
        let claim = begun(store, key).await;
        let mut changes = completed(&claim);
        let expiry = Expiry::deleted_in(Duration::ZERO);
        changes.saga.as_mut().unwrap().expiry = Some(Box::new(expiry));
        store.record(vec![changes]).await.unwrap();
    }
    let member = store.join(HOUR).await.unwrap().member;
    let epoch = store.lease_maintenance(member, HOUR).await.unwrap().unwrap();
    (epoch, store.expired(100).await.unwrap())
}

async fn hold(place: &Place, sql: &str) -> PgConnection {
    let mut holder = place.connection().await;
    holder.execute("BEGIN").await.unwrap();
    holder.execute(AssertSqlSafe(sql.replace("{schema}", &place.schema))).await.unwrap();
    holder
}

async fn sagas(store: &PostgresStore, keys: &[&str]) -> Vec<bool> {
    let mut there = Vec::new();
    for key in keys {
        let saga = store.saga(&Tenant::default(), &Key::new(key).unwrap()).await.unwrap();
        let records = store.records_of(&Tenant::default(), &Key::new(key).unwrap()).await.unwrap();
        assert_eq!(saga.is_some(), records.len() == 1, "{key} is there by half");
        there.push(saga.is_some());
    }
    there
}

#[tokio::test]
async fn a_saga_that_another_transaction_holds_is_left() {
    let place = Place::new().await;
    let store = place.open().await;
    let keys = ["k-1", "k-2", "k-3", "k-4", "k-5"];
    let (epoch, expired) = due(&store, &keys).await;
    let progress = format!("SELECT 1 FROM {{schema}}.progress WHERE id = {} FOR UPDATE", expired[1].id.0);
    let one = hold(&place, &progress).await;
    let other = hold(&place, "SELECT 1 FROM {schema}.records WHERE key = 'k-4' FOR UPDATE").await;
    let mut deleted = store.purge(epoch, &expired, HOUR).await.unwrap().deleted;
    deleted.sort_unstable();
    let taken: Vec<SagaId> = [0, 2, 4].map(|index| expired[index].id).into();
    assert_eq!(deleted, taken);
    assert_eq!(sagas(&store, &keys).await, [false, true, false, true, false]);
    drop((one, other));
    let left = [expired[1].clone(), expired[3].clone()];
    loop {
        // The server may not have noticed yet that both transactions ended.
        let purged = store.purge(epoch, &left, HOUR).await.unwrap();
        assert_eq!((purged.kept.len(), purged.tombstones.len()), (0, 0));
        if sagas(&store, &keys).await == [false; 5] {
            break;
        }
    }
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn a_family_of_which_a_sub_saga_is_held_is_left_whole() {
    let place = Place::new().await;
    let store = place.open().await;
    let (epoch, expired) = due(&store, &["k-1"]).await;
    let mut sub = new_saga(&store, "k-2").await;
    sub.key = Key::from_stored("k-1>pay").unwrap();
    (sub.status, sub.commands) = (saga_core::store::Status::Completed, Vec::new());
    let id = sub.id;
    store.start(vec![sub]).await.unwrap();
    let mut holder = hold(&place, &format!("SELECT 1 FROM {{schema}}.progress WHERE id = {} FOR UPDATE", id.0)).await;
    assert_eq!(store.purge(epoch, &expired, HOUR).await.unwrap(), Purged::default());
    assert_eq!(store.whole_sagas(&[expired[0].id]).await.unwrap().len(), 2);
    holder.execute("COMMIT").await.unwrap();
    assert_eq!(store.purge(epoch, &expired, HOUR).await.unwrap().deleted, [expired[0].id]);
    assert_eq!(store.sagas_by_id(&[id]).await.unwrap().len(), 0);
    store.close().await;
    place.remove().await;
}

fn purge_of(epoch: u64, saga: &ExpiredSaga) -> String {
    format!(
        "SELECT became FROM {{schema}}.purge_sagas({epoch}, ARRAY[{}]::bigint[], ARRAY[{}]::bigint[], ARRAY[false], 1, 1000)",
        saga.id.0, saga.version
    )
}

/// An operator restarts a saga that is being purged: its history ends with it, and the call waits for no purge.
#[tokio::test]
async fn a_saga_that_is_being_purged_gets_no_history() {
    let place = Place::new().await;
    let store = place.open().await;
    let (epoch, expired) = due(&store, &["k-1"]).await;
    let mut purging = hold(&place, &purge_of(epoch, &expired[0])).await;
    let (saga, detail) = (expired[0].id, "restart".to_owned());
    let entry = HistoryEntry { saga, step: None, kind: HistoryKind::Operator, attempt: 0, detail };
    let restart = Changes { history: vec![entry], ..Changes::default() };
    let refused = store.record(vec![restart.clone()]).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Conflict, "{refused}");
    purging.execute("COMMIT").await.unwrap();
    assert!(store.record(vec![restart]).await.unwrap()[0].is_ok());
    let entries = AssertSqlSafe(format!("SELECT count(*) FROM {}.history", place.schema));
    assert_eq!(sqlx::query_scalar::<_, i64>(entries).fetch_one(&mut purging).await.unwrap(), 0);
    store.close().await;
    place.remove().await;
}

/// The purge locks first, and is slow to commit: a start of the key waits, and is new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_under_a_key_that_is_being_purged_is_new() {
    let place = Place::new().await;
    let store = place.open().await;
    let (epoch, expired) = due(&store, &["k-1"]).await;
    let mut purging = hold(&place, &purge_of(epoch, &expired[0])).await;
    let again = new_saga(&store, "k-1").await;
    let starting = {
        let (store, again) = (store.clone(), again.clone());
        tokio::spawn(async move {
            loop {
                match store.start(vec![again.clone()]).await {
                    Ok(mut started) => return started.remove(0),
                    Err(error) => assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}"),
                }
            }
        })
    };
    let waits = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity \
         WHERE query LIKE '%' || $1 || '%start_dated_sagas%' AND wait_event_type = 'Lock')";
    let mut watch = place.connection().await;
    while !sqlx::query_scalar::<_, bool>(waits).bind(&place.schema).fetch_one(&mut watch).await.unwrap() {
        tokio::task::yield_now().await;
    }
    purging.execute("COMMIT").await.unwrap();
    assert!(matches!(starting.await.unwrap(), Started::New));
    assert_eq!(store.sagas_by_id(&[again.id]).await.unwrap().len(), 1);
    store.close().await;
    place.remove().await;
}

/// A session that is killed while it purges leaves a family whole, whichever statement it had come to.
#[tokio::test]
async fn a_purge_that_is_killed_at_any_statement_leaves_families_whole() {
    const DELETES: [&str; 4] = ["records", "history", "progress", "sagas"];
    for table in DELETES {
        let place = Place::new().await;
        let store = place.open().await;
        let keys = ["k-1", "k-2"];
        let (epoch, expired) = due(&store, &keys).await;
        let mut conn = place.connection().await;
        // The server ends the session at the first row that it deletes from this table.
        let kill = format!(
            "INSERT INTO {{schema}}.history (saga, at, kind, attempt, detail) VALUES ({}, now(), 'stuck', 0, ''); \
             CREATE FUNCTION {{schema}}.kill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 PERFORM pg_terminate_backend(pg_backend_pid()); RETURN OLD; END $$; \
             CREATE TRIGGER kill BEFORE DELETE ON {{schema}}.{table} FOR EACH ROW EXECUTE FUNCTION {{schema}}.kill()",
            expired[1].id.0
        );
        let run = |sql: &str| sqlx::raw_sql(AssertSqlSafe(sql.replace("{schema}", &place.schema)));
        conn.execute(run(&kill)).await.unwrap();
        store.purge(epoch, &expired, HOUR).await.unwrap_err();
        store.close().await;
        let store = place.open().await;
        assert_eq!(sagas(&store, &keys).await, [true, true], "{table}");
        conn.execute(run(&format!("DROP TRIGGER kill ON {{schema}}.{table}"))).await.unwrap();
        store.purge(epoch, &expired, HOUR).await.unwrap();
        assert_eq!(sagas(&store, &keys).await, [false, false], "{table}");
        store.close().await;
        place.remove().await;
    }
}
