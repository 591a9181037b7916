//! The benchmarks of the saga runtime, each beside its floors in the same run.
//!
//! `cargo xtask bench` builds this in release and runs it: all benchmarks, or the one that is named.

mod amqp;
mod clock;
mod cpu;
mod dedupe;
mod disk;
mod drive;
mod figures;
mod http;
mod line;
mod memory;
mod messages;
mod peers;
mod postgres;
mod remote;
mod reservations;
mod rounds;
mod sqlite;
mod transports;

use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Parser, Subcommand};

/// Benchmarks, each with its floors in the same run. Where none is named, all run, one after the other.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    benchmark: Option<Benchmark>,
    #[command(flatten)]
    all: All,
}

/// How all benchmarks are run.
#[derive(Debug, Args)]
struct All {
    /// Measures the other runtimes as well, from the workspace `bench/peers`, which is built first.
    #[arg(long)]
    peers: bool,
    /// One JSON object a figure instead of tables.
    #[arg(long)]
    json: bool,
    /// Ends with an error if a target is not reached.
    #[arg(long)]
    require: bool,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Sagas on a SQLite file at synchronous=FULL, beside bare rusqlite doing the same writes.
    Sqlite(sqlite::Options),
    /// Sagas on PostgreSQL with durable commits, beside hand-written code and other runtimes.
    Postgres(postgres::Options),
    /// Purging ended sagas on PostgreSQL, alone and beside sagas, and how large the tables stay.
    Retention(postgres::retention::Options),
    /// Other runtimes doing the same sagas on PostgreSQL, each as its authors advise.
    Peers(peers::Options),
    /// The relay from PostgreSQL to RabbitMQ, beside bare lapin; and how long one message takes from its commit.
    Amqp(amqp::Options),
    /// The same messages over each transport, and over Kafka beside its bare client.
    Transports(transports::Options),
    /// Sagas whose steps write nothing, on the store in memory, beside the same functions called by tasks.
    Memory(memory::Options),
    /// Requests with an `Idempotency-Key` on PostgreSQL, beside the same handler without one.
    Http(rounds::Options),
    /// Redis in front of the database for requests with a key and for received messages, and locks in Redis.
    Dedupe(rounds::Options),
    /// Reservations on PostgreSQL, beside one transaction for each operation and beside pgbench.
    Reservations(rounds::Options),
    /// Sagas over two services and RabbitMQ, beside the same sagas in one service.
    Remote(remote::Options),
    /// The other service of `remote`, which starts it by itself.
    #[command(hide = true)]
    RemoteHost(remote::HostOptions),
    /// The process that `postgres` begins to measure its memory.
    #[command(hide = true)]
    WaitingChild(postgres::Child),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.benchmark.map_or_else(|| run_all(&arguments.all), run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("error: a target was not reached");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Answers false if a target was required and not reached.
fn run(benchmark: Benchmark) -> Result<bool> {
    match benchmark {
        Benchmark::Sqlite(options) => sqlite::run(&options),
        Benchmark::Postgres(options) => postgres::run(&options),
        Benchmark::Retention(options) => postgres::retention::run(&options),
        Benchmark::Peers(options) => peers::run(&options).map(|()| true),
        Benchmark::Amqp(options) => amqp::run(&options),
        Benchmark::Transports(options) => transports::run(&options),
        Benchmark::Memory(options) => memory::run(&options),
        Benchmark::Http(options) => http::run(&options),
        Benchmark::Dedupe(options) => dedupe::run(&options),
        Benchmark::Reservations(options) => reservations::run(&options),
        Benchmark::Remote(options) => remote::run(&options),
        Benchmark::RemoteHost(options) => remote::host(&options).map(|()| true),
        Benchmark::WaitingChild(child) => postgres::run_child(&child),
    }
}

/// Runs the benchmarks one after the other, each as if it were named alone. One that fails is told, and the others go on.
fn run_all(all: &All) -> Result<bool> {
    let (mut failed, mut is_reached) = (Vec::new(), true);
    for name in
        ["postgres", "retention", "remote", "amqp", "transports", "http", "dedupe", "reservations", "sqlite", "memory"]
    {
        if !all.json {
            println!("\n== {name}\n");
        }
        let flags = [("--peers", all.peers && name == "postgres"), ("--json", all.json), ("--require", all.require)];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag);
        let benchmark = Arguments::try_parse_from(["bench", name].into_iter().chain(flags))?.benchmark;
        match benchmark.context("a benchmark that is named").and_then(run) {
            Ok(reached) => is_reached &= reached,
            Err(error) => {
                eprintln!("error: {name}: {error:#}");
                failed.push(name);
            }
        }
    }
    ensure!(failed.is_empty(), "these benchmarks failed: {}", failed.join(", "));
    Ok(is_reached)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::Arguments;

    fn error(arguments: &[&str]) -> String {
        let parsed = Arguments::try_parse_from(["bench"].iter().chain(arguments));
        parsed.expect_err("there is no such thing").to_string()
    }

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn all_benchmarks_run_where_none_is_named() {
        let arguments = Arguments::try_parse_from(["bench", "--json"]).expect("they can be run as JSON");
        assert!(arguments.benchmark.is_none() && arguments.all.json && !arguments.all.peers);
    }

    #[test]
    fn what_is_misspelled_is_named() {
        for (arguments, named) in [
            (&["postgers"][..], "postgers"),
            (&["--jsn"], "--jsn"),
            (&["postgres", "--in-fligth", "16"], "--in-fligth"),
            (&["postgres", "--work", "W-undone"], "W-undone"),
            (&["peers", "--work", "W-hot"], "W-hot"),
            (&["postgres", "--rounds", "1"], "1"),
        ] {
            let error = error(arguments);
            assert!(error.contains(&format!("'{named}'")), "{arguments:?}: {error}");
        }
    }
}
