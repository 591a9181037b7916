//! The contenders in rounds, and what one request costs.

use std::time::Duration;

use anyhow::Result;
use axum::Router;
use saga_servers::FaultProxy;

use super::application::{drive, on, send};
use crate::cpu::Cpu;
use crate::figures::{Figures, Target, print_table};
use crate::line::Line;
use crate::postgres::server;
use crate::rounds::Options;

const BENCH: &str = "http";
/// What a request with a key may cost more than the bare handler.
const ROUND_TRIPS_MORE: f64 = 1.0;
const KEYED_RATIO: f64 = 0.75;
/// Beside a handler that keeps keys by hand.
const BY_HAND_RATIO: f64 = 1.0;
const REPLAY_RATIO: f64 = 3.0;

/// Runs all contenders. It answers false if a target was required and not reached.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run_all(options))
}

async fn run_all(options: &Options) -> Result<bool> {
    let server = server::start().await?;
    let url = server.create_database("payments").await?;
    let app = on(&url).await?;
    let Options { requests, in_flight, rounds, json, .. } = *options;
    if !json {
        println!(
            "A payment by POST on PostgreSQL, durable; {requests} requests a round, {rounds} rounds, interleaved\n"
        );
    }
    let contenders = [
        ("bare", "the bare handler", "/bare"),
        ("row", "its key's row and no more", "/row"),
        ("by-hand", "a key kept by hand", "/by-hand"),
        ("keyed", "with a key", "/keyed"),
        ("replay", "replays", "/keyed"),
    ];
    let mut figures = contenders.map(|(_, name, _)| Contender::new(name, in_flight));
    for round in 0..rounds {
        let numbers = round * requests..(round + 1) * requests;
        for (contender, (_, _, path)) in figures.iter_mut().zip(contenders) {
            let before = Cpu::read(server.data_folder())?;
            let took = drive(&app, path, numbers.clone(), in_flight).await?;
            contender.note(requests, took, Cpu::read(server.data_folder())?.since(before));
        }
    }
    let [bare, _, by_hand, keyed, replays] = figures.each_ref().map(|contender| &contender.requests);
    if json {
        for ((subject, ..), contender) in contenders.iter().zip(&figures) {
            let ratio = (*subject != "bare").then(|| ("bare".to_owned(), contender.requests.ratio_to(bare)));
            let line = Line::of(BENCH, "payment", in_flight, subject);
            let line = line.number("requests_per_s", contender.requests.median(), 0);
            let line = line.number("server_us", contender.server.median(), 0);
            println!("{}", line.number("client_us", contender.client.median(), 0).ratios(ratio));
        }
    } else {
        print_table(&figures.each_ref().map(|contender| &contender.requests));
        println!();
        for contender in &figures {
            println!("{}\n{}", contender.server.row(), contender.client.row());
        }
        println!();
    }
    let more = cost(&url, "/keyed").await? - cost(&url, "/bare").await?;
    let targets = [
        Target::at_most("round trips more than the bare handler", ROUND_TRIPS_MORE, more),
        Target::at_least("with a key, beside the bare handler", KEYED_RATIO, keyed.ratio_to(bare)),
        Target::at_least("with a key, beside a key kept by hand", BY_HAND_RATIO, keyed.ratio_to(by_hand)),
        Target::at_least("replays, beside the bare handler", REPLAY_RATIO, replays.ratio_to(bare)),
    ];
    for target in &targets {
        target.print(BENCH, json);
    }
    Ok(!options.require || targets.iter().all(Target::is_reached))
}

/// What one kind of request reached.
struct Contender {
    requests: Figures,
    /// The processor time of a request, of the server of the database and of the application with its clients.
    server: Figures,
    client: Figures,
}

impl Contender {
    fn new(name: &str, in_flight: u32) -> Self {
        Self {
            requests: Figures::of_requests(format!("{name}, {in_flight} in flight")),
            server: Figures::of_microseconds(format!("{name}, cpu of the server")),
            client: Figures::of_microseconds(format!("{name}, cpu of the application")),
        }
    }

    fn note(&mut self, requests: u32, took: Duration, spent: Cpu) {
        let requests = f64::from(requests);
        self.requests.values.push(requests / took.as_secs_f64());
        self.server.values.push(spent.server.as_secs_f64() * 1e6 / requests);
        self.client.values.push(spent.client.as_secs_f64() * 1e6 / requests);
    }
}

/// The round trips of one request on a warm connection.
async fn cost(url: &str, path: &str) -> Result<f64> {
    let proxy = FaultProxy::start(url).await?;
    let app: Router = on(proxy.url()).await?;
    let first = if path == "/bare" { 2_000_000_000 } else { 2_100_000_000 };
    for number in 0..3 {
        send(&app, path, first + number).await?;
    }
    let before = proxy.counts().round_trips;
    send(&app, path, first + 3).await?;
    // The counts have few digits.
    #[expect(clippy::cast_precision_loss, reason = "a request has a handful of round trips")]
    Ok((proxy.counts().round_trips - before) as f64)
}
