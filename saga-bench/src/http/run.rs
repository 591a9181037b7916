//! The contenders in rounds, and what one request costs.

use anyhow::Result;
use axum::Router;
use saga_servers::FaultProxy;

use super::application::{drive, on, send};
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
    let of = |name: &str| Figures::of_requests(format!("{name}, {in_flight} in flight"));
    let mut figures = [
        of("the bare handler"),
        of("its key's row and no more"),
        of("a key kept by hand"),
        of("with a key"),
        of("replays"),
    ];
    for round in 0..rounds {
        let numbers = round * requests..(round + 1) * requests;
        for (figures, path) in figures.iter_mut().zip(["/bare", "/row", "/by-hand", "/keyed", "/keyed"]) {
            let took = drive(&app, path, numbers.clone(), in_flight).await?;
            figures.values.push(f64::from(requests) / took.as_secs_f64());
        }
    }
    let [bare, row, by_hand, keyed, replays] = &figures;
    if json {
        let subjects = [("bare", bare), ("row", row), ("by-hand", by_hand), ("keyed", keyed), ("replay", replays)];
        for (subject, figures) in subjects {
            let ratio = (subject != "bare").then(|| ("bare".to_owned(), figures.ratio_to(bare)));
            let line = Line::of(BENCH, "payment", in_flight, subject).number("requests_per_s", figures.median(), 0);
            println!("{}", line.ratios(ratio));
        }
    } else {
        print_table(&[bare, row, by_hand, keyed, replays]);
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
