//! A server that ends at each point of its work: its future is dropped there.

use std::sync::Arc;
use std::time::Duration;

use saga_reservations::{Action, Late, Point, Reason, RedisReservations, Reservations as _, State};
use tokio::sync::Notify;

use super::shop::{Shop, act, confirm, reason, reserve, seat};

/// Runs the work of a server until it reaches the point, and drops it there.
async fn dropped_at<F: Future>(shop: &Shop, point: Point, work: impl FnOnce(RedisReservations) -> F) {
    let reached = Arc::new(Notify::new());
    let notify = Arc::clone(&reached);
    let one = shop.at_point(point, move || {
        notify.notify_one();
        std::future::pending()
    });
    tokio::select! {
        _ = work(one) => panic!("it never came to {point:?}"),
        () = reached.notified() => {}
    }
}

/// `R-DURABLE`, `R-ONCE`: a mark that is left behind is settled, by a repeated confirmation or by the sweeper.
#[tokio::test]
async fn a_confirmation_that_was_left_behind_is_finished() {
    for point in [Point::Marked, Point::Committed, Point::Read] {
        for is_repeated in [true, false] {
            let shop = Shop::open(2).await;
            let held = reserve(&shop.one, "one").await.unwrap();
            dropped_at(&shop, point, |one| async move { confirm(&one, "one", held.token).await }).await;
            shop.advance(Duration::from_mins(2));
            reserve(&shop.other, "other").await.unwrap();
            // It does not expire, and no other request gets its seat.
            assert_eq!(reason(reserve(&shop.other, "third").await), Reason::Insufficient);
            if is_repeated {
                confirm(&shop.other, "one", held.token).await.unwrap();
            } else {
                shop.sweep().await;
            }
            let found = shop.other.find(&held.key).await.unwrap().unwrap();
            assert_eq!((found.state, found.token), (State::Confirmed, held.token));
            assert_eq!(shop.taken().await, (1, 1), "{point:?} {is_repeated}");
            assert_eq!(confirm(&shop.other, "one", held.token).await.unwrap(), found);
        }
    }
}

/// `R-ONCE`: SQL decides between a confirmation and a release of the same hold.
#[tokio::test]
async fn a_release_bars_a_confirmation_that_is_under_way() {
    for point in [Point::Marked, Point::Committed] {
        let shop = Shop::open(1).await;
        let held = reserve(&shop.one, "one").await.unwrap();
        let other = shop.other.clone();
        let is_before = point == Point::Marked;
        let one = shop.at_point(point, move || {
            let other = other.clone();
            async move {
                let released = act(&other, "one", Action::Release { token: Some(held.token) }).await;
                if is_before {
                    assert_eq!(released.unwrap().state, State::Released);
                } else {
                    assert_eq!(reason(released), Reason::WrongState);
                }
            }
        });
        let confirmed = confirm(&one, "one", held.token).await;
        if is_before {
            assert_eq!(reason(confirmed), Reason::Ended);
            assert_eq!(shop.taken().await, (0, 0));
        } else {
            confirmed.unwrap();
            assert_eq!(shop.taken().await, (1, 0));
        }
    }
}

/// `R-KEY`: the hold of a request that ended before it asked SQL.
#[tokio::test]
async fn a_request_that_was_left_behind_is_repeated_or_released() {
    let shop = Shop::open(1).await;
    dropped_at(&shop, Point::Held, |one| async move { reserve(&one, "one").await }).await;
    assert_eq!(shop.taken().await, (0, 1));
    let held = reserve(&shop.other, "one").await.unwrap();
    assert_eq!(shop.taken().await, (0, 1));
    let released = act(&shop.other, "one", Action::Release { token: None }).await.unwrap();
    assert_eq!((released.state, released.token), (State::Released, held.token));
    assert_eq!(shop.taken().await, (0, 0));
}

/// `R-FAIR`: a confirmation that SQL has and Redis does not know yet takes its units once.
#[tokio::test]
async fn a_confirmation_that_redis_was_not_told_of_takes_no_unit_from_others() {
    let shop = Shop::open(2).await;
    let held = reserve(&shop.one, "one").await.unwrap();
    dropped_at(&shop, Point::Committed, |one| async move { confirm(&one, "one", held.token).await }).await;
    // Redis is told what is confirmed, by a server that does not know whose units they are.
    let doubled = shop.other.resource(&seat()).await.unwrap().unwrap();
    assert_eq!((doubled.confirmed, doubled.held), (1, 1));
    reserve(&shop.other, "other").await.unwrap();
    assert_eq!(shop.taken().await, (1, 1));
    assert_eq!(reason(reserve(&shop.other, "third").await), Reason::Insufficient);
    assert_eq!(confirm(&shop.other, "one", held.token).await.unwrap().state, State::Confirmed);
}

/// The same where a capacity is lowered, and where a late confirmation takes its units again.
#[tokio::test]
async fn units_that_are_counted_twice_refuse_no_other_operation() {
    let shop = Shop::open(2).await;
    let late = reserve(&shop.one, "late").await.unwrap();
    shop.advance(Duration::from_mins(2));
    let held = reserve(&shop.one, "one").await.unwrap();
    dropped_at(&shop, Point::Committed, |one| async move { confirm(&one, "one", held.token).await }).await;
    shop.other.resource(&seat()).await.unwrap();
    let late = Action::Confirm { token: late.token, late: Late::IfFree };
    assert_eq!(act(&shop.other, "late", late).await.unwrap().state, State::Confirmed);

    let shop = Shop::open(2).await;
    let held = reserve(&shop.one, "one").await.unwrap();
    dropped_at(&shop, Point::Committed, |one| async move { confirm(&one, "one", held.token).await }).await;
    shop.other.resource(&seat()).await.unwrap();
    shop.other.set_capacity(&seat(), 1).await.unwrap();
    assert_eq!(shop.taken().await, (1, 0));
}

/// `R-CAPACITY`: a lower capacity that SQL has counts also when Redis was never told.
#[tokio::test]
async fn a_lower_capacity_that_redis_was_not_told_of_is_read() {
    let shop = Shop::open(5).await;
    let reached = Arc::new(Notify::new());
    let (notify, sql) = (Arc::clone(&reached), shop.sql.clone());
    let one = shop.at_point(Point::Lowered, move || {
        let (notify, sql) = (Arc::clone(&notify), sql.clone());
        async move {
            sql.set_capacity(&seat(), 0).await.unwrap();
            notify.notify_one();
            std::future::pending::<()>().await;
        }
    });
    let seat = seat();
    tokio::select! {
        _ = one.set_capacity(&seat, 0) => panic!("it was not lowered"),
        () = reached.notified() => {}
    }
    shop.advance(Duration::from_mins(2));
    assert_eq!(reason(reserve(&shop.other, "other").await), Reason::Insufficient);
    assert_eq!(shop.taken().await, (0, 0));
}
