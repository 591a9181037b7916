//! Holds that are over and what else Redis need not keep.

use std::time::Duration;

use saga_reservations::{Action, Reservations as _, Reserve, Sweeper};
use tokio::task::JoinSet;

use super::shop::{Shop, act, confirm, reserve, seat};
use super::together::scripts;

const HOUR: Duration = Duration::from_hours(1);

/// More confirmed holds and more idle resources than one script removes.
#[tokio::test]
async fn a_sweep_removes_all_that_redis_need_not_keep() {
    let shop = Shop::open(1).await;
    let mut confirming = JoinSet::new();
    for number in 0..200 {
        let server = shop.one.clone();
        confirming.spawn(async move {
            let name = format!("sign-up-{number}");
            let held = act(&server, &name, Action::Reserve(Reserve::unique("name", &name))).await.unwrap();
            confirm(&server, &name, held.token).await.unwrap();
        });
    }
    confirming.join_all().await;
    let size = async |set: &str| {
        let key = format!("{{saga:reservations}}:{set}");
        shop.redis.command(&["ZCARD", &key]).await.unwrap().trim().to_owned()
    };
    assert_eq!((size("ended").await, size("idle").await), ("200".to_owned(), "200".to_owned()));
    let sweeper = Sweeper::default();

    shop.advance(2 * HOUR);
    sweeper.sweep(&shop.one).await.unwrap();
    assert_eq!((size("ended").await, size("idle").await), ("200".to_owned(), "0".to_owned()));

    shop.advance(23 * HOUR);
    sweeper.sweep(&shop.one).await.unwrap();
    assert_eq!(size("ended").await, "0");
}

/// One script ends a limited number of holds, because Redis does nothing else meanwhile.
#[tokio::test]
async fn a_capacity_is_lowered_by_several_scripts_if_many_holds_are_over() {
    let shop = Shop::open(2_000).await;
    let mut calls = Vec::new();
    for holds in [1, 1_100] {
        let mut reserving = JoinSet::new();
        for number in 0..holds {
            let server = shop.one.clone();
            reserving.spawn(async move { reserve(&server, &format!("{number} of {holds}")).await.unwrap() });
        }
        reserving.join_all().await;
        shop.advance(Duration::from_mins(2));
        let before = scripts(&shop.redis).await;
        shop.one.set_capacity(&seat(), 0).await.unwrap();
        calls.push(scripts(&shop.redis).await - before);
        assert_eq!(shop.taken().await, (0, 0));
        shop.one.set_capacity(&seat(), 2_000).await.unwrap();
    }
    assert_eq!(calls[1], calls[0] + 1);
}
