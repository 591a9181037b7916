//! The peers in rounds, in new databases of one server, and their results.

use anyhow::{Result, ensure};
use clap::Args;
use saga_servers::{PostgresServer, psql};

use super::programs::{Job, Programs};
use crate::cpu::Cpu;
use crate::figures::{Figures, print_table};
use crate::line::Line;
use crate::postgres::server;

/// How the benchmark is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rounds, in each of which every peer runs once.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Sagas of three steps a run.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    sagas: u32,
    /// Sagas in flight; more than one number makes a table each.
    #[arg(long, value_delimiter = ',', default_value = "16,64", value_parser = clap::value_parser!(u32).range(1..=128))]
    in_flight: Vec<u32>,
    /// What is done: W, W-undo, or both.
    #[arg(long, value_delimiter = ',', default_value = "W", value_parser = ["W", "W-undo"])]
    work: Vec<String>,
    /// Only these peers.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The peers' names, and nothing else.
    #[arg(long)]
    list: bool,
    /// One JSON object a figure instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs all peers. One that fails is told, and the others go on.
pub(crate) fn run(options: &Options) -> Result<()> {
    let programs = Programs::build()?;
    let names = programs.names(&options.only)?;
    if options.list {
        for name in &names {
            println!("{name}");
        }
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run_all(options, &programs, &names))
}

/// What one peer reached with one work.
#[derive(Debug)]
struct Reached {
    name: String,
    steps: Figures,
    client_cpu: Figures,
    server_cpu: Figures,
    is_durable: bool,
    failures: u32,
}

async fn run_all(options: &Options, programs: &Programs, names: &[&str]) -> Result<()> {
    let server = server::start().await?;
    if !options.json {
        println!("PostgreSQL with fsync, synchronous_commit and full_page_writes on; peers and server on this machine");
        println!(
            "{} sagas a run, {} rounds, interleaved; the median, [the least to the most]",
            options.sagas, options.rounds
        );
    }
    let mut failures = 0;
    for work in &options.work {
        for in_flight in &options.in_flight {
            let mut reached: Vec<Reached> = names.iter().map(|name| Reached::nothing(name, work, *in_flight)).collect();
            for round in 0..options.rounds {
                for (name, reached) in names.iter().zip(&mut reached) {
                    let job = Job { subject: name, work, in_flight: *in_flight, sagas: options.sagas };
                    eprintln!("{work}, {in_flight} in flight, round {}: {name}", round + 1);
                    if let Err(error) = run_once(&server, programs, job, reached).await {
                        reached.failures += 1;
                        eprintln!("error: {name}: {error:#}");
                    }
                }
            }
            failures += reached.iter().map(|reached| reached.failures).sum::<u32>();
            print(&reached, work, *in_flight, options.json);
        }
    }
    ensure!(failures == 0, "{failures} runs failed");
    Ok(())
}

/// One run in a database that is there for it alone.
async fn run_once(server: &PostgresServer, programs: &Programs, job: Job<'_>, reached: &mut Reached) -> Result<()> {
    let url = server.create_database("peer").await?;
    psql(&server.url(), "CHECKPOINT").await?;
    let before = Cpu::read(server.data_folder())?;
    let told = programs.run(&url, job).await;
    let spent = Cpu::read(server.data_folder())?.since(before);
    psql(&server.url(), "DROP DATABASE peer WITH (FORCE)").await?;
    let told = told?;
    let steps = f64::from(told.steps);
    reached.steps.values.push(steps / told.seconds);
    reached.client_cpu.values.push(told.client_cpu_seconds * 1_000.0 / steps);
    reached.server_cpu.values.push(spent.server.as_secs_f64() * 1_000.0 / steps);
    reached.is_durable = told.durable;
    if !told.durable && !reached.steps.name.ends_with(NOT_DURABLE) {
        reached.steps.name.push_str(NOT_DURABLE);
    }
    Ok(())
}

const NOT_DURABLE: &str = " (not durable)";

impl Reached {
    fn nothing(name: &str, work: &str, in_flight: u32) -> Self {
        Self {
            name: name.to_owned(),
            steps: Figures::of_steps(format!("{name}, {work}/{in_flight}")),
            client_cpu: Figures::of_cpu(format!("{name}, {work}/{in_flight}, its own")),
            // From the program's start to its end: making the tables is in it.
            server_cpu: Figures::of_cpu(format!("{name}, {work}/{in_flight}, the database's")),
            is_durable: true,
            failures: 0,
        }
    }

    fn line(&self, work: &str, in_flight: u32) -> Line {
        let (client, server) = (self.client_cpu.median(), self.server_cpu.median());
        Line::of("peers", work, in_flight, &self.name)
            .number("steps_per_s", self.steps.median(), 1)
            .ratios([])
            .number("cpu_ms_per_step", client + server, 4)
            .number("client_cpu_ms_per_step", client, 4)
            .with("durable", self.is_durable.into())
    }
}

fn print(reached: &[Reached], work: &str, in_flight: u32, is_json: bool) {
    let ran: Vec<&Reached> = reached.iter().filter(|reached| !reached.steps.values.is_empty()).collect();
    if is_json {
        return ran.iter().for_each(|reached| println!("{}", reached.line(work, in_flight)));
    }
    let columns: [fn(&Reached) -> &Figures; 3] =
        [|reached| &reached.steps, |reached| &reached.client_cpu, |reached| &reached.server_cpu];
    for column in columns {
        println!();
        print_table(&ran.iter().map(|reached| column(reached)).collect::<Vec<_>>());
    }
}
