//! The benchmarks of the saga runtime, each beside its floors in the same run.
//!
//! `cargo xtask bench sqlite` builds this in release and runs it.

mod amqp;
mod clock;
mod cpu;
mod disk;
mod drive;
mod figures;
mod peers;
mod postgres;
mod sqlite;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Benchmarks, each with its floors in the same run.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Sagas on a SQLite file at synchronous=FULL, beside bare rusqlite doing the same writes.
    Sqlite(sqlite::Options),
    /// Sagas on PostgreSQL with durable commits, beside pgbench with one step a commit.
    Postgres(postgres::Options),
    /// Other runtimes doing the same sagas on PostgreSQL, each as its authors advise.
    Peers(peers::Options),
    /// The relay from PostgreSQL to RabbitMQ, beside bare lapin; and how long one message takes from its commit.
    Amqp(amqp::Options),
}

fn main() -> ExitCode {
    let ran = match Arguments::parse().benchmark {
        Benchmark::Sqlite(options) => sqlite::run(&options),
        Benchmark::Postgres(options) => postgres::run(&options).map(|()| true),
        Benchmark::Peers(options) => peers::run(&options).map(|()| true),
        Benchmark::Amqp(options) => amqp::run(&options),
    };
    match ran {
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
