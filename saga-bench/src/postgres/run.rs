//! The contenders, round after round in new databases of one server, and what came out.

use anyhow::Result;
use clap::Args;

use super::workload::{STEPS_PER_SAGA, assert_business_rows, create_business};
use super::{floor, saga, server};
use crate::cpu::Cpu;
use crate::figures::{Figures, print_table};

/// How the benchmark is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Sagas of three steps a round.
    #[arg(long, default_value_t = 4_000)]
    sagas: u32,
    /// Sagas in flight, and clients of pgbench.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=200))]
    in_flight: u32,
    /// Rounds, in each of which every contender runs once.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: u32,
    /// One JSON object a figure instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs all contenders.
pub(crate) fn run(options: &Options) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run_all(options))
}

async fn run_all(options: &Options) -> Result<()> {
    let server = server::start().await?;
    let Options { sagas, in_flight, rounds, json } = options;
    if !json {
        println!(
            "PostgreSQL with fsync, synchronous_commit and full_page_writes on, client and server on this machine"
        );
        println!(
            "{sagas} sagas of 3 steps a round, {rounds} rounds, interleaved; the median, [the least to the most]\n"
        );
    }
    let mut floor = Figures::of_steps(format!("pgbench, one step a commit, {in_flight} clients"));
    let mut single = Figures::of_steps(format!("sagas, {in_flight} in flight, run_on_max = 1"));
    let mut ordinary = Figures::of_steps(format!("sagas, {in_flight} in flight"));
    let cpu = |whose: &str| Figures::of_cpu(format!("{whose}, client and server"));
    let (mut single_cpu, mut ordinary_cpu) = (cpu("sagas, run_on_max = 1"), cpu("sagas"));
    let mut floor_cpu = Figures::of_cpu("pgbench, the server alone");
    let per_step = 1_000.0 / f64::from(sagas * STEPS_PER_SAGA);
    for round in 0..*rounds {
        let database = async |name: &str| -> Result<String> {
            let url = server.create_database(&format!("{name}_{round}")).await?;
            create_business(&url).await?;
            Ok(url)
        };
        let url = database("floor").await?;
        let before = Cpu::read(server.data_folder())?;
        floor.values.push(floor::run(&url, server.folder(), sagas * STEPS_PER_SAGA, *in_flight).await?);
        floor_cpu.values.push(Cpu::read(server.data_folder())?.since(before).server.as_secs_f64() * per_step);
        for (name, figures, cpu, run_on_max) in [
            ("single", &mut single, &mut single_cpu, Some(1)),
            ("ordinary", &mut ordinary, &mut ordinary_cpu, None),
        ] {
            let url = database(name).await?;
            let before = Cpu::read(server.data_folder())?;
            figures.values.push(saga::run(&url, *sagas, *in_flight, run_on_max).await?);
            let spent = Cpu::read(server.data_folder())?.since(before);
            cpu.values.push((spent.client + spent.server).as_secs_f64() * per_step);
            assert_business_rows(&url, *sagas).await?;
        }
    }
    print_table(&[&floor, &single, &ordinary], *json);
    print_table(&[&floor_cpu, &single_cpu, &ordinary_cpu], *json);
    let ratio = |name: &str, figures: &Figures| {
        let ratio = (figures.ratio_to(&floor) * 100.0).round() / 100.0;
        if *json {
            println!("{}", serde_json::json!({ "figure": name, "unit": "ratio", "median": ratio }));
        } else {
            println!("{name:<44} {ratio:>12.2}");
        }
    };
    ratio("sagas, run_on_max = 1, to pgbench", &single);
    ratio("sagas to pgbench", &ordinary);
    Ok(())
}
