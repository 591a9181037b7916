//! Redis is cut off, and restarted with its data and without.

use std::sync::Arc;

use saga_reservations::{
    Reason, RedisReservations, Reservation, Reservations as _, ReservationsError, ReservationsStore as _,
    SqlReservations, State,
};
use saga_servers::{FaultProxy, RedisServer, Traffic};

use super::shop::{Shop, confirm, reason, reserve, seat};

fn assert_unavailable(answer: Result<Reservation, ReservationsError>) {
    let error = answer.unwrap_err();
    assert!(matches!(error, ReservationsError::Unavailable { .. }), "{error:?}");
}

/// `R-CAPACITY`: nothing is decided without Redis, and nothing is lost.
#[tokio::test]
async fn without_redis_every_operation_is_unavailable_and_is_repeated() {
    let redis = Arc::new(RedisServer::start().await.unwrap());
    let proxy = FaultProxy::start(&redis.url()).await.unwrap();
    let shop = Shop::at(proxy.url(), redis, 1).await;
    let held = reserve(&shop.one, "one").await.unwrap();
    shop.one.ping().await.unwrap();

    proxy.set_traffic(Traffic::RefusesNew);
    proxy.cut_all();
    assert_unavailable(reserve(&shop.one, "two").await);
    assert_unavailable(confirm(&shop.one, "one", held.token).await);
    assert!(shop.one.ping().await.is_err(), "the health follows Redis");

    proxy.set_traffic(Traffic::Flows);
    assert_eq!(reserve(&shop.one, "one").await.unwrap(), held);
    assert_eq!(reason(reserve(&shop.other, "two").await), Reason::Insufficient);
    assert_eq!(confirm(&shop.one, "one", held.token).await.unwrap().state, State::Confirmed);
    assert_eq!(shop.taken().await, (1, 0));
}

/// `R-TOKEN`: holds stay through a restart with the data. Without it they are lost, and nothing else.
#[tokio::test]
async fn a_restart_keeps_what_redis_kept_and_tokens_grow() {
    for is_kept in [true, false] {
        let settings = [("appendonly", if is_kept { "yes" } else { "no" })];
        let mut redis = RedisServer::start_with(&settings).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let sql = SqlReservations::open_sqlite(folder.path().join("reservations.db")).await.unwrap();
        let server = RedisReservations::connect(&redis.url(), sql).await.unwrap();
        server.set_capacity(&seat(), 3).await.unwrap();
        let confirmed = reserve(&server, "confirmed").await.unwrap();
        confirm(&server, "confirmed", confirmed.token).await.unwrap();
        let held = reserve(&server, "held").await.unwrap();

        redis.kill().await.unwrap();
        redis.restart().await.unwrap();
        let next = reserve(&server, "next").await.unwrap();
        assert!(next.token > held.token);
        let answer = confirm(&server, "held", held.token).await;
        if is_kept {
            assert_eq!(answer.unwrap().token, held.token);
        } else {
            assert_eq!(reason(answer), Reason::Expired);
        }
        let left = server.resource(&seat()).await.unwrap().unwrap();
        assert_eq!((left.confirmed, left.held), (if is_kept { 2 } else { 1 }, 1));
    }
}
