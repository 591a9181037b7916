//! Three servers over PostgreSQL and sixteen clients, while servers are killed, stopped and given another clock, and PostgreSQL
//! is killed. Once the holds are in PostgreSQL, and once in a Redis that is emptied and killed as well. A judge that shares no code with the crate reads a journal that triggers wrote.
//!
//! `cargo xtask chaos reservations --seed 7 --rounds 500` runs it longer, with the draws of this seed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod clients;
mod draws;
mod faults;
mod journal;
mod judge;
mod servers;

use std::sync::Arc;

use saga_servers::{PostgresServer, RedisServer};

use crate::clients::Clients;
use crate::draws::Draws;
use crate::faults::Faults;
use crate::judge::Holds;
use crate::servers::Servers;

const RESOURCES: u64 = 10;
const ROUNDS: u64 = 12;

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_oversold_through_kills() {
    run(Holds::InSql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_oversold_through_kills_and_flushes_of_redis() {
    run(Holds::InRedis).await;
}

async fn run(holds: Holds) {
    let seed = number_of("SAGA_RESERVATIONS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let rounds = number_of("SAGA_RESERVATIONS_ROUNDS").unwrap_or(ROUNDS);
    let place = if holds == Holds::InRedis { "redis" } else { "postgres" };
    println!("repeat with: cargo xtask chaos reservations --seed {seed} --rounds {rounds} --holds {place}");
    let mut draws = Draws::new(seed);

    let postgres = PostgresServer::start().await.unwrap();
    let url = postgres.create_database("reservations").await.unwrap();
    let redis = match holds {
        Holds::InSql => None,
        Holds::InRedis => Some(RedisServer::start().await.unwrap()),
    };
    let servers = Servers::start(&url, redis.as_ref().map(RedisServer::url)).await;
    journal::install(&url).await;
    let capacities: Vec<(String, u64)> = (0..RESOURCES)
        .map(|number| (format!("resource-{number}"), if number == 0 { 1 } else { draws.below(50) + 1 }))
        .collect();
    let clients = Arc::new(Clients::new(servers.addresses(), capacities.clone()));
    clients.set_capacities().await;

    let working = tokio::spawn(Arc::clone(&clients).work(draws.fork(), rounds));
    let mut faults = Faults { postgres, redis, servers, clients: Arc::clone(&clients), draws: draws.fork() };
    let counts = faults.strike(rounds).await;
    working.await.unwrap();
    clients.give_everything_back().await;

    let answers = clients.answers();
    let entries = journal::read(&url).await;
    println!("{} answers, {} entries of the journal, {counts:?}", answers.len(), entries.len());
    judge::judge(holds, &capacities, &entries, &answers);
}
