//! `FLUSHALL` at each point of the work of one server, while another one goes on.

use std::sync::Arc;

use saga_reservations::{Action, Point, Reason, RedisReservations, Reservations as _, State};

use super::shop::{Shop, act, confirm, reason, reserve, seat};

/// Empties Redis at a point, and lets the other server take the seat meanwhile if it is to be quick.
fn flushed_at(shop: &Shop, point: Point, is_other_quick: bool) -> RedisReservations {
    let (redis, other) = (Arc::clone(&shop.redis), shop.other.clone());
    shop.at_point(point, move || {
        let (redis, other) = (Arc::clone(&redis), other.clone());
        async move {
            redis.command(&["FLUSHALL"]).await.unwrap();
            if is_other_quick {
                _ = reserve(&other, "other").await;
            }
        }
    })
}

/// `R-CAPACITY`, `R-DURABLE`: one of them has the seat at the end, and the answers say which.
#[tokio::test]
async fn a_flush_within_a_confirmation_sells_one_seat_once() {
    for point in [Point::Marked, Point::Committed, Point::Read] {
        for is_other_quick in [false, true] {
            let shop = Shop::open(1).await;
            let held = reserve(&shop.one, "one").await.unwrap();
            let one = flushed_at(&shop, point, is_other_quick);
            let first = confirm(&one, "one", held.token).await;
            let second = match reserve(&shop.other, "other").await {
                Ok(other) => confirm(&shop.other, "other", other.token).await,
                refused => refused,
            };
            let is_first = first.is_ok();
            assert!(is_first != second.is_ok(), "{point:?} {is_other_quick}: {first:?} {second:?}");
            // Behind the commit nothing is lost; before it, only if another epoch has begun.
            assert_eq!(is_first, point != Point::Marked || !is_other_quick, "{point:?} {is_other_quick}");
            let lost = if is_first { second } else { first };
            let reason = reason(lost);
            assert!(matches!(reason, Reason::Expired | Reason::Insufficient), "{reason}");
            for name in ["one", "other"] {
                let is_confirmed = shop.other.find(&name.parse().unwrap()).await.unwrap();
                let is_confirmed = is_confirmed.is_some_and(|found| found.state == State::Confirmed);
                assert_eq!(is_confirmed, (name == "one") == is_first);
            }
            shop.sweep().await;
            assert_eq!(shop.taken().await.0, 1);
        }
    }
}

/// `R-KEY`: the same request twice, with a flush and a confirmation between them.
#[tokio::test]
async fn a_request_that_is_on_its_way_through_a_flush_finds_the_confirmation() {
    let shop = Shop::open(2).await;
    let held = reserve(&shop.one, "one").await.unwrap();
    shop.flush().await;
    // Redis holds the key again, and before SQL is asked, the first hold is confirmed or is not.
    let other = shop.other.clone();
    let one = shop.at_point(Point::Held, move || {
        let other = other.clone();
        async move { assert_eq!(reason(confirm(&other, "one", held.token).await), Reason::StaleToken) }
    });
    let again = reserve(&one, "one").await.unwrap();
    assert!(again.token > held.token);
    assert_eq!(confirm(&shop.one, "one", again.token).await.unwrap().state, State::Confirmed);
    shop.flush().await;
    assert_eq!(reserve(&shop.other, "one").await.unwrap().token, again.token);
    assert_eq!(shop.taken().await, (1, 0));
}

/// `R-CAPACITY`: what was read from SQL before a flush is not told to Redis behind it.
#[tokio::test]
async fn what_was_read_before_a_flush_is_read_again() {
    let shop = Shop::open(5).await;
    shop.flush().await;
    let (redis, other) = (Arc::clone(&shop.redis), shop.other.clone());
    let one = shop.at_point(Point::Read, move || {
        let (redis, other) = (Arc::clone(&redis), other.clone());
        async move {
            redis.command(&["FLUSHALL"]).await.unwrap();
            other.set_capacity(&seat(), 0).await.unwrap();
        }
    });
    assert_eq!(reason(reserve(&one, "one").await), Reason::Insufficient);
    assert_eq!(shop.taken().await, (0, 0));
}

/// `R-CAPACITY`: a capacity that is being lowered counts before it is in SQL.
#[tokio::test]
async fn nothing_is_held_above_a_capacity_that_is_being_lowered() {
    let shop = Shop::open(5).await;
    let other = shop.other.clone();
    let one = shop.at_point(Point::Lowered, move || {
        let other = other.clone();
        async move { assert_eq!(reason(reserve(&other, "other").await), Reason::Insufficient) }
    });
    one.set_capacity(&seat(), 0).await.unwrap();
    assert_eq!(reason(reserve(&shop.other, "other").await), Reason::Insufficient);
    shop.one.set_capacity(&seat(), 1).await.unwrap();
    reserve(&shop.other, "other").await.unwrap();
}

/// `R-FAIR`, `R-CAPACITY`: a server without Redis changes what there is.
#[tokio::test]
async fn what_redis_does_not_know_refuses_nobody_and_is_not_oversold() {
    let shop = Shop::open(1).await;
    reserve(&shop.one, "one").await.unwrap();
    shop.sql.set_capacity(&seat(), 2).await.unwrap();
    let second = reserve(&shop.other, "two").await.unwrap();
    shop.sql.set_capacity(&seat(), 0).await.unwrap();
    assert_eq!(reason(confirm(&shop.other, "two", second.token).await), Reason::Insufficient);
    assert_eq!(shop.taken().await, (0, 2));
    // The refusal told Redis, and the hold is as it was.
    act(&shop.other, "two", Action::Release { token: Some(second.token) }).await.unwrap();
    assert_eq!(reason(reserve(&shop.one, "three").await), Reason::Insufficient);
}
