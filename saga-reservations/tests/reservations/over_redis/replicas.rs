//! Holds that replicas must confirm, in a Redis that has none.

use std::time::Duration;

use saga_redis::RedisOptions;
use saga_reservations::{RedisReservations, ReservationsError};

use super::shop::{Shop, reserve};

/// A hold that only the primary has is lost in a failover, so it does not count, however often it is asked for.
#[tokio::test]
async fn a_hold_that_no_replica_has_is_not_granted_to_a_repeat_either() {
    let shop = Shop::open(1).await;
    let options = RedisOptions::new(shop.redis.url()).replicas(1).confirm_timeout(Duration::from_millis(50));
    let store = RedisReservations::connect_with(options, shop.sql.clone()).await.unwrap();
    for attempt in ["the first", "its repeat"] {
        let error = reserve(&store, "a").await.unwrap_err();
        assert!(matches!(error, ReservationsError::Unavailable { .. }), "{attempt}: {error:?}");
    }
    assert_eq!(shop.taken().await, (0, 1), "it is there, and ends by itself");
}
