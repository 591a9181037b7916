//! Redis is told which keys the database has, and then a request for another key needs no read.

use std::sync::Arc;
use std::time::Duration;

use saga_reservations::{
    Action, Operation, Point, Reason, RedisReservations, Reservation, ReservationKey, Reservations as _,
    ReservationsStore as _, SqlReservations, State,
};
use saga_servers::{FaultProxy, RedisServer, Traffic};
use tokio::task::JoinSet;

use super::shop::{Shop, act, confirm, reason, reserve, seat};

const RELEASE: Action = Action::Release { token: None };

async fn sold(server: &RedisReservations, name: &str) -> Reservation {
    let held = reserve(server, name).await.unwrap();
    confirm(server, name, held.token).await.unwrap()
}

async fn is_loaded(shop: &Shop) -> bool {
    !shop.redis.command(&["GET", "{saga:reservations}:loaded"]).await.unwrap().trim().is_empty()
}

/// `R-KEY`: with all keys loaded, the database is not asked about a new key.
#[tokio::test]
async fn a_new_key_needs_no_read() {
    let database = saga_servers::shared::database("loads").await.unwrap();
    let proxy = FaultProxy::start(database.url()).await.unwrap();
    let redis = RedisServer::start().await.unwrap();
    let sql = SqlReservations::connect_postgres(proxy.url()).await.unwrap();
    let server = RedisReservations::connect(&redis.url(), sql).await.unwrap();
    server.set_capacity(&seat(), 5).await.unwrap();
    let old = sold(&server, "old").await;
    redis.command(&["FLUSHALL"]).await.unwrap();
    reserve(&server, "resource is read").await.unwrap();
    server.expire_overdue(64).await.unwrap();

    proxy.set_traffic(Traffic::RefusesNew);
    proxy.cut_all();
    assert_eq!(reserve(&server, "new").await.unwrap().state, State::Held);
    proxy.set_traffic(Traffic::Flows);
    assert_eq!(reserve(&server, "old").await.unwrap(), old);
    assert_eq!(server.resource(&seat()).await.unwrap().unwrap().taken(), 3);
}

/// `R-KEY`: keys from before a flush are known in each epoch, whether they are loaded yet or not.
#[tokio::test]
async fn keys_from_before_a_flush_are_found_before_and_behind_the_load() {
    let shop = Shop::open(5).await;
    let old = sold(&shop.one, "old").await;
    act(&shop.one, "barred", RELEASE).await.unwrap();
    for _ in 0..2 {
        shop.flush().await;
        for is_swept in [false, true] {
            if is_swept {
                shop.sweep().await;
            }
            assert_eq!(is_loaded(&shop).await, is_swept);
            assert_eq!(reserve(&shop.one, "old").await.unwrap(), old);
            assert_eq!(reason(reserve(&shop.other, "barred").await), Reason::Ended);
        }
    }
    assert_eq!(shop.taken().await, (1, 0));
}

/// `R-KEY`: what Redis forgets of the holds that were confirmed or barred, it knows as a key.
#[tokio::test]
async fn a_key_that_redis_forgets_is_not_held_again() {
    let shop = Shop::open(5).await;
    shop.sweep().await;
    assert!(is_loaded(&shop).await);
    let old = sold(&shop.one, "old").await;
    act(&shop.one, "barred", RELEASE).await.unwrap();
    shop.advance(Duration::from_secs(1));
    shop.other.prune(Duration::ZERO, 64).await.unwrap();
    assert_eq!(shop.redis.command(&["HLEN", "{saga:reservations}:holds"]).await.unwrap().trim(), "0");
    assert_eq!(reserve(&shop.one, "old").await.unwrap(), old);
    assert_eq!(shop.taken().await, (1, 0));
}

/// `R-KEY`: a key that SQL gets while the keys are loaded.
#[tokio::test]
async fn a_key_that_is_confirmed_during_the_load_is_found() {
    let shop = Shop::open(5).await;
    let other = shop.other.clone();
    let one = shop.at_point(Point::KeysRead, move || {
        let other = other.clone();
        async move {
            sold(&other, "meanwhile").await;
            // Redis forgets the hold before all is loaded.
            other.prune(Duration::ZERO, 64).await.unwrap();
            act(&other, "barred meanwhile", RELEASE).await.unwrap();
        }
    });
    shop.advance(Duration::from_secs(1));
    one.expire_overdue(64).await.unwrap();
    assert!(is_loaded(&shop).await);
    assert_eq!(reserve(&shop.other, "meanwhile").await.unwrap().state, State::Confirmed);
    assert_eq!(reason(reserve(&shop.other, "barred meanwhile").await), Reason::Ended);
}

/// `R-KEY`: what a server has read before a flush does not count as all keys behind it.
#[tokio::test]
async fn a_load_of_an_earlier_epoch_does_not_end_behind_a_flush() {
    let shop = Shop::open(5).await;
    let (redis, other) = (Arc::clone(&shop.redis), shop.other.clone());
    let one = shop.at_point(Point::KeysRead, move || {
        let (redis, other) = (Arc::clone(&redis), other.clone());
        async move {
            sold(&other, "meanwhile").await;
            redis.command(&["FLUSHALL"]).await.unwrap();
            reserve(&other, "begins an epoch").await.unwrap();
        }
    });
    one.expire_overdue(64).await.unwrap();
    assert!(!is_loaded(&shop).await);
    assert_eq!(reserve(&shop.other, "meanwhile").await.unwrap().state, State::Confirmed);
    one.expire_overdue(64).await.unwrap();
    assert!(is_loaded(&shop).await);
    assert_eq!(reserve(&shop.other, "meanwhile").await.unwrap().state, State::Confirmed);
}

/// `R-KEY`: a release whose key Redis has noted and lost is noted again before it is in SQL.
#[tokio::test]
async fn a_release_that_a_flush_overtook_bars_its_request() {
    let shop = Shop::open(5).await;
    let (redis, other) = (Arc::clone(&shop.redis), shop.other.clone());
    let one = shop.at_point(Point::Barring, move || {
        let (redis, other) = (Arc::clone(&redis), other.clone());
        async move {
            redis.command(&["FLUSHALL"]).await.unwrap();
            reserve(&other, "begins an epoch").await.unwrap();
            other.expire_overdue(64).await.unwrap();
        }
    });
    assert_eq!(act(&one, "late", RELEASE).await.unwrap().state, State::Released);
    assert!(is_loaded(&shop).await);
    assert_eq!(reason(reserve(&shop.other, "late").await), Reason::Ended);
}

/// `R-KEY`: a load of many scripts is done when the last one is.
#[tokio::test]
async fn many_keys_are_loaded_by_several_scripts() {
    let shop = Shop::open(5).await;
    let mut releases = JoinSet::new();
    let name = |number: u32| format!("key-{number:04}");
    for number in 0..2_100 {
        let (sql, key) = (shop.sql.clone(), ReservationKey::new(name(number)).unwrap());
        releases.spawn(async move { sql.perform(Operation::new(key, RELEASE)).await });
    }
    releases.join_all().await.into_iter().for_each(|released| drop(released.unwrap()));
    shop.sweep().await;
    assert!(is_loaded(&shop).await);
    for number in [0, 999, 1_000, 1_999, 2_000, 2_099] {
        assert_eq!(reason(reserve(&shop.one, &name(number)).await), Reason::Ended, "{number}");
    }
    reserve(&shop.one, "key-new").await.unwrap();
}
