//! The contenders in rounds, in new databases and virtual hosts, and their results.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use saga_servers::RabbitMqServer;

use super::saga::{run_local, run_remote};
use super::work::STEPS_PER_SAGA;
use crate::cpu::Cpu;
use crate::figures::{Figures, Target, print_table};
use crate::line::Line;
use crate::postgres::server;

const BENCH: &str = "remote";
/// Of the same sagas in one service.
const REMOTE_TO_LOCAL: f64 = 0.3;

/// How the benchmark is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Sagas of three steps a round.
    #[arg(long, default_value_t = 4_000)]
    sagas: u32,
    /// Sagas in flight.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    in_flight: u32,
    /// How many rounds to run. Every contender runs once in each.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: u32,
    /// One JSON object a figure instead of a table.
    #[arg(long)]
    json: bool,
    /// Ends with an error if a target is not reached.
    #[arg(long)]
    require: bool,
}

/// Runs all contenders. It answers false if a target was required and not reached.
pub(crate) fn run(options: &Options) -> Result<bool> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run_all(options))
}

async fn run_all(options: &Options) -> Result<bool> {
    let Options { sagas, in_flight, rounds, json, require } = *options;
    let postgres = server::start().await?;
    let broker = RabbitMqServer::start().await.context("the benchmark needs a RabbitMQ of its own")?;
    if !json {
        println!("PostgreSQL with durable commits, RabbitMQ with quorum queues, two services in two processes");
        println!(
            "{sagas} sagas of 3 steps a round, {rounds} rounds, interleaved; the median, [the least to the most]\n"
        );
    }
    let mut local = Rate::new("W", format!("all steps in one service, {in_flight} in flight"));
    let mut remote = Rate::new("W-remote", format!("step 2 in another service, {in_flight} in flight"));
    for round in 0..rounds {
        let database = async |name: &str| postgres.create_database(&format!("{name}_{round}")).await;
        let url = database("local").await?;
        let before = Cpu::read(postgres.data_folder())?;
        let took = run_local(&url, sagas, in_flight).await?;
        local.add(sagas, took, Cpu::read(postgres.data_folder())?.since(before));
        let (orders, payments) = (database("orders").await?, database("payments").await?);
        let vhost = broker.create_vhost(&format!("remote_{round}")).await?;
        let before = Cpu::read(postgres.data_folder())?;
        let took = run_remote(&orders, &payments, &vhost, sagas, in_flight).await?;
        remote.add(sagas, took, Cpu::read(postgres.data_folder())?.since(before));
    }
    let target = Target::at_least("W-remote / W", REMOTE_TO_LOCAL, remote.steps.ratio_to(&local.steps));
    if json {
        for rate in [&local, &remote] {
            println!("{}", rate.line(in_flight, &local));
        }
    } else {
        print_table(&[&local.steps, &remote.steps]);
        print_table(&[&local.cpu, &remote.cpu]);
    }
    target.print(BENCH, json);
    Ok(!require || target.is_reached())
}

/// Steps a second, and what one costs the services and their databases; the broker's part is not counted.
struct Rate {
    work: &'static str,
    steps: Figures,
    cpu: Figures,
}

impl Rate {
    fn new(work: &'static str, name: String) -> Self {
        Self { work, cpu: Figures::of_cpu(format!("{name}, without the broker")), steps: Figures::of_steps(name) }
    }

    fn add(&mut self, sagas: u32, took: Duration, spent: Cpu) {
        let steps = f64::from(sagas * STEPS_PER_SAGA);
        self.steps.values.push(steps / took.as_secs_f64());
        self.cpu.values.push((spent.client + spent.server).as_secs_f64() * 1e3 / steps);
    }

    fn line(&self, in_flight: u32, local: &Self) -> Line {
        let line = Line::of(BENCH, self.work, in_flight, "saga").number("steps_per_s", self.steps.median(), 0);
        let is_compared = self.work != local.work;
        let ratio = is_compared.then(|| (local.work.to_owned(), self.steps.ratio_to(&local.steps)));
        line.ratios(ratio).number("cpu_ms_per_step", self.cpu.median(), 4)
    }
}
