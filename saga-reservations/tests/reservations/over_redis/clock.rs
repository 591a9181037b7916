//! The clock of Redis jumps beyond a hold and back.

use std::sync::Arc;

use saga_reservations::{Action, Late, Reason, State};
use saga_servers::RedisServer;

use super::shop::{Shop, act, confirm, reason, reserve};

const HOUR: i64 = 3_600;

/// A shop whose Redis has a clock of its own.
async fn shop(seats: u64) -> Shop {
    let redis = Arc::new(RedisServer::start_with_clock().await.unwrap());
    Shop::at(&redis.url(), Arc::clone(&redis), seats).await
}

/// `R-CAPACITY`, `R-EXPIRY`, `R-TOKEN`: a jump forward ends holds early. What is held anew is not held twice when it jumps back.
#[tokio::test]
async fn a_jump_beyond_a_hold_and_back_holds_no_unit_twice() {
    let shop = shop(2).await;
    let first = reserve(&shop.one, "first").await.unwrap();
    let sold = reserve(&shop.one, "sold").await.unwrap();
    confirm(&shop.one, "sold", sold.token).await.unwrap();
    assert_eq!(reason(reserve(&shop.other, "second").await), Reason::Insufficient);

    shop.redis.set_clock(HOUR).unwrap();
    let second = reserve(&shop.other, "second").await.unwrap();
    assert!(second.token > sold.token);
    assert_eq!(reason(confirm(&shop.one, "first", first.token).await), Reason::Expired);
    assert_eq!(shop.taken().await, (1, 1));

    shop.redis.set_clock(0).unwrap();
    assert_eq!(reason(confirm(&shop.one, "first", first.token).await), Reason::Expired, "what is over stays over");
    let late = Action::Confirm { token: first.token, late: Late::IfFree };
    assert_eq!(reason(act(&shop.one, "first", late.clone()).await), Reason::Insufficient);
    assert_eq!(reason(reserve(&shop.one, "third").await), Reason::Insufficient);
    assert_eq!(shop.taken().await, (1, 1));

    act(&shop.other, "second", Action::Release { token: Some(second.token) }).await.unwrap();
    let again = act(&shop.one, "first", late).await.unwrap();
    assert!(again.state == State::Confirmed && again.token > second.token);
    assert_eq!(shop.taken().await, (2, 0));
}

/// `R-CAPACITY`, `R-DURABLE`: a jump back lets holds last longer, and they are confirmed once.
#[tokio::test]
async fn a_jump_back_lets_holds_last_and_oversells_nothing() {
    let shop = shop(2).await;
    shop.redis.set_clock(HOUR).unwrap();
    let ahead = reserve(&shop.one, "ahead").await.unwrap();
    shop.redis.set_clock(-HOUR).unwrap();
    let behind = reserve(&shop.one, "behind").await.unwrap();
    assert!(behind.token > ahead.token && behind.expires_at < ahead.expires_at);
    assert_eq!(reason(reserve(&shop.other, "third").await), Reason::Insufficient);
    for (name, held) in [("ahead", &ahead), ("behind", &behind)] {
        let confirmed = confirm(&shop.other, name, held.token).await.unwrap();
        assert_eq!(confirm(&shop.one, name, held.token).await.unwrap(), confirmed);
    }
    shop.redis.set_clock(HOUR).unwrap();
    shop.sweep().await;
    assert_eq!(shop.taken().await, (2, 0));
    assert_eq!(reason(reserve(&shop.other, "third").await), Reason::Insufficient);
}

/// `R-DURABLE`: a mark does not end by a jump, and the sweeper finishes the confirmation that was left behind.
#[tokio::test]
async fn a_jump_during_a_confirmation_ends_no_mark() {
    let shop = shop(1).await;
    let held = reserve(&shop.one, "one").await.unwrap();
    let redis = Arc::clone(&shop.redis);
    let one = shop.at_point(saga_reservations::Point::Marked, move || {
        let redis = Arc::clone(&redis);
        async move { redis.set_clock(HOUR).unwrap() }
    });
    let other = shop.other.clone();
    let confirmed = confirm(&one, "one", held.token).await.unwrap();
    assert_eq!(confirmed.state, State::Confirmed);
    assert_eq!(reason(reserve(&other, "another").await), Reason::Insufficient);
    shop.redis.set_clock(0).unwrap();
    assert_eq!(confirm(&other, "one", held.token).await.unwrap(), confirmed);
    assert_eq!(shop.taken().await, (1, 0));
}
