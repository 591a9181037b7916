//! What it costs to find out that one key is known: in Redis, and in the database.

use anyhow::Result;
use axum::Router;
use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;

use super::hybrid::Route;
use crate::clock::Stopwatch;
use crate::figures::Figures;

/// As long as a response with its headers.
const RESPONSE: [u8; 200] = [b'x'; 200];

/// The costs of one key, in microseconds, with one request at a time.
#[derive(Debug)]
pub(super) struct Lookups {
    pub(super) redis: Figures,
    pub(super) redis_write: Figures,
    /// The process that answered the first request, which remembers the key.
    pub(super) same_process: Figures,
    /// Another process.
    pub(super) other_process: Figures,
}

impl Lookups {
    pub(super) fn new() -> Self {
        let of = |name: &str| Figures::of_microseconds(name);
        Self {
            redis: of("a lookup in Redis"),
            redis_write: of("a write to Redis, behind the commit"),
            same_process: of("a replay by the database, same process"),
            other_process: of("a replay by the database, other process"),
        }
    }

    pub(super) fn all(&self) -> [&Figures; 4] {
        [&self.redis, &self.redis_write, &self.same_process, &self.other_process]
    }

    /// One round. The numbers are of payments that were not sent before.
    pub(super) async fn measure(
        &mut self,
        redis: &mut MultiplexedConnection,
        processes: [Router; 2],
        numbers: std::ops::Range<u32>,
    ) -> Result<()> {
        let watch = Stopwatch::started();
        for number in numbers.clone() {
            let _: Option<Vec<u8>> = redis.get(format!("lookup:{number}")).await?;
        }
        self.redis.values.push(micros_each(&watch, &numbers));
        let watch = Stopwatch::started();
        for number in numbers.clone() {
            let () = redis.set_ex(format!("lookup:{number}"), &RESPONSE[..], 60).await?;
        }
        self.redis_write.values.push(micros_each(&watch, &numbers));
        let [first, other] = processes;
        let mut route = Route { processes: vec![first], redis: None };
        for number in numbers.clone() {
            route.send(number, false).await?;
        }
        let watch = Stopwatch::started();
        for number in numbers.clone() {
            route.send(number, false).await?;
        }
        self.same_process.values.push(micros_each(&watch, &numbers));
        route.processes = vec![other];
        let watch = Stopwatch::started();
        for number in numbers.clone() {
            route.send(number, false).await?;
        }
        self.other_process.values.push(micros_each(&watch, &numbers));
        Ok(())
    }
}

pub(super) fn micros_each(watch: &Stopwatch, numbers: &std::ops::Range<u32>) -> f64 {
    watch.elapsed().as_secs_f64() * 1e6 / f64::from(numbers.end - numbers.start)
}
