//! The faults, at moments that the progress of the clients decides.

use std::sync::Arc;
use std::time::Duration;

use saga_servers::{PostgresServer, RedisServer, Signal};

use crate::clients::Clients;
use crate::draws::Draws;
use crate::servers::Servers;

/// What is broken, and how.
pub(crate) struct Faults {
    pub(crate) postgres: PostgresServer,
    /// It has the holds, if it is there.
    pub(crate) redis: Option<RedisServer>,
    pub(crate) servers: Servers,
    pub(crate) clients: Arc<Clients>,
    pub(crate) draws: Draws,
}

/// How often each fault struck.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    kills: u32,
    stops: u32,
    kills_of_postgres: u32,
    flushes: u32,
    kills_of_redis: u32,
}

impl Counts {
    fn strikes(&self) -> u32 {
        self.kills + self.stops + self.kills_of_postgres + self.flushes + self.kills_of_redis
    }
}

/// How many rounds all clients finish between two faults.
const ROUNDS_BETWEEN: u64 = 24;

impl Faults {
    /// Strikes until the clients have finished. PostgreSQL and the servers go on until this is dropped.
    pub(crate) async fn strike(&mut self, rounds: u64) -> Counts {
        let mut counts = Counts::default();
        let all = Clients::rounds_of_all(rounds);
        let mut at = ROUNDS_BETWEEN;
        while at + ROUNDS_BETWEEN < all {
            self.wait_for(at).await;
            let number = self.draws.below(3) as usize;
            let kinds = if self.redis.is_some() { 5 } else { 3 };
            // Each kind strikes in the shortest run too.
            match (counts.strikes() % kinds, &mut self.redis) {
                (0, _) => {
                    self.servers.kill(number).await;
                    counts.kills += 1;
                }
                (1, _) => {
                    self.servers.signal(number, Signal::Stop);
                    self.wait_for(at + ROUNDS_BETWEEN / 2).await;
                    self.servers.signal(number, Signal::Continue);
                    counts.stops += 1;
                }
                (3, Some(redis)) => {
                    redis.command(&["FLUSHALL"]).await.unwrap();
                    counts.flushes += 1;
                }
                (4, Some(redis)) => {
                    redis.kill().await.unwrap();
                    redis.restart().await.unwrap();
                    self.servers.revive().await;
                    counts.kills_of_redis += 1;
                }
                _ => {
                    self.postgres.kill().await.unwrap();
                    self.postgres.restart().await.unwrap();
                    self.servers.revive().await;
                    counts.kills_of_postgres += 1;
                }
            }
            at += ROUNDS_BETWEEN;
        }
        self.wait_for(all).await;
        counts
    }

    /// Waits until the clients have finished this many rounds.
    async fn wait_for(&self, rounds: u64) {
        while self.clients.finished() < rounds {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
