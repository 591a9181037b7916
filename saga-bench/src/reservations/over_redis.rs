//! Requests that are held in Redis, beside a bare script.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use redis::Script;
use redis::aio::MultiplexedConnection;
use saga_reservations::{
    Action, Operation, RedisReservations, ReservationKey, Reservations as _, ReservationsStore as _, Reserve,
    ResourceName, SqlReservations,
};
use saga_servers::RedisServer;

use super::work::{Spread, at_once};

/// What a bare script does at least for a hold: it counts, and keeps a value.
const BARE: &str = "local token = redis.call('INCR', KEYS[1]) redis.call('HSET', KEYS[2], ARGV[1], token) return token";

/// Reservations whose holds are in a Redis of their own.
pub(super) struct OverRedis {
    reservations: Arc<RedisReservations>,
    bare: MultiplexedConnection,
    _server: RedisServer,
}

impl OverRedis {
    pub(super) async fn start(store: SqlReservations, spread: Spread) -> Result<Self> {
        let server = RedisServer::start().await?;
        let reservations = RedisReservations::connect(&server.url(), store).await?;
        // Redis reads each resource from SQL once.
        for number in 0..spread.0 {
            reservations.resource(&ResourceName::new(spread.resource(number))?).await?;
        }
        // As the sweeper of a server does: Redis learns which keys the database has.
        reservations.expire_overdue(1).await?;
        let client = redis::Client::open(server.url())?;
        let bare = client.get_multiplexed_async_connection().await.context("cannot connect to Redis")?;
        Ok(Self { reservations: Arc::new(reservations), bare, _server: server })
    }

    /// Holds one unit for each request. They stay held.
    pub(super) async fn reserve(
        &self,
        spread: Spread,
        prefix: &str,
        requests: u32,
        in_flight: u32,
    ) -> Result<Duration> {
        let (reservations, prefix) = (Arc::clone(&self.reservations), Arc::<str>::from(prefix));
        at_once(requests, in_flight, move |number| {
            let (reservations, prefix) = (Arc::clone(&reservations), Arc::clone(&prefix));
            async move {
                let key = ReservationKey::new(format!("{prefix}-{number}"))?;
                let reserve = Action::Reserve(Reserve::of(spread.resource(number), 1));
                reservations.perform(Operation::new(key, reserve)).await?;
                Ok(())
            }
        })
        .await
    }

    pub(super) async fn run_bare(&self, prefix: &str, requests: u32, in_flight: u32) -> Result<Duration> {
        let (bare, prefix) = (self.bare.clone(), Arc::<str>::from(prefix));
        let script = Arc::new(Script::new(BARE));
        at_once(requests, in_flight, move |number| {
            let (mut bare, prefix, script) = (bare.clone(), Arc::clone(&prefix), Arc::clone(&script));
            async move {
                let key = format!("{prefix}-{number}");
                let _: u64 = script.key("bare:counter").key("bare:holds").arg(key).invoke_async(&mut bare).await?;
                Ok(())
            }
        })
        .await
    }
}
