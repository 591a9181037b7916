//! The benchmarks of the saga runtime, each beside its floors in the same run.
//!
//! `cargo xtask bench sqlite` builds this in release and runs it.

mod amqp;
mod clock;
mod cpu;
mod disk;
mod drive;
mod figures;
mod memory;
mod peers;
mod postgres;
mod remote;
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
    /// Sagas on PostgreSQL with durable commits, beside hand-written code and other runtimes.
    Postgres(postgres::Options),
    /// Other runtimes doing the same sagas on PostgreSQL, each as its authors advise.
    Peers(peers::Options),
    /// The relay from PostgreSQL to RabbitMQ, beside bare lapin; and how long one message takes from its commit.
    Amqp(amqp::Options),
    /// Sagas whose steps write nothing, on the store in memory, beside the same functions called by tasks.
    Memory(memory::Options),
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
    let ran = match Arguments::parse().benchmark {
        Benchmark::Sqlite(options) => sqlite::run(&options),
        Benchmark::Postgres(options) => postgres::run(&options),
        Benchmark::Peers(options) => peers::run(&options).map(|()| true),
        Benchmark::Amqp(options) => amqp::run(&options),
        Benchmark::Memory(options) => memory::run(&options),
        Benchmark::Remote(options) => remote::run(&options),
        Benchmark::RemoteHost(options) => remote::host(&options).map(|()| true),
        Benchmark::WaitingChild(child) => postgres::run_child(&child),
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
