//! What the sweeper removes from Redis.

use std::time::Duration;

use saga_reservations::{Action, Reserve, Sweeper};
use tokio::task::JoinSet;

use super::shop::{Shop, act, confirm};

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
