//! The contenders in rounds, on new files, and their results.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use super::file::create;
use super::saga::Tenants;
use super::{floor, portable, saga};
use crate::disk;
use crate::figures::{Figures, Target, print_table};
use crate::line::Line;

/// A contender that commits every step is this much slower, so it gets so many fewer sagas.
const SLOW_SHARE: u32 = 10;

/// Of bare rusqlite with one commit a step.
const TIMES_ONE_BY_ONE: f64 = 8.0;

/// Of bare rusqlite with whole sagas in each commit.
const TIMES_GROUPED: f64 = 1.0 / 3.0;

/// Of the same steps on the connection itself.
const TIMES_NATIVE: f64 = 0.95;

/// Of the same sagas of one tenant: those of many tenants that share commits, and that do not.
const TIMES_SHARED: f64 = 0.8;
const TIMES_APART: f64 = 0.35;

/// Of three steps each, so a commit has about fifty.
const SAGAS_PER_COMMIT: u32 = 16;
const TENANTS: u32 = 1_000;

const BENCH: &str = "sqlite";
/// The floors' names in JSON.
const ONE_BY_ONE: &str = "rusqlite";
const GROUPED: &str = "rusqlite, 16 sagas a commit";
/// The contender's name in JSON, and that of its steps by `SqlConn`.
const SAGA: &str = "saga";
const PORTABLE: &str = "saga by SqlConn";
/// Those of its sagas that belong to many tenants.
const SHARED: &str = "saga, tenants share commits";
const APART: &str = "saga, tenants apart";

/// How the benchmark is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Sagas of three steps a round.
    #[arg(long, default_value_t = 10_000)]
    sagas: u32,
    /// How many rounds to run. Every contender runs once in each.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: u32,
    /// Sagas in flight at a time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    in_flight: u32,
    /// Where the files are written: a folder on a disk. By default the build folder.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// One JSON object a figure instead of a table.
    #[arg(long)]
    json: bool,
    /// Ends with an error if a target is not reached.
    #[arg(long)]
    require: bool,
}

/// Runs all contenders. It answers false if a target was required and not reached.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let folder = disk::folder(options.folder.as_deref())?;
    if !options.json {
        print_header(options, folder.path())?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut one_by_one = Figures::of_steps("bare rusqlite, one step a commit");
    let mut grouped = Figures::of_steps("bare rusqlite, 16 sagas a commit");
    let mut sagas = Figures::of_steps(format!("sagas, {} in flight", options.in_flight));
    let mut portables = Figures::of_steps(format!("sagas by SqlConn, {} in flight", options.in_flight));
    let mut shared = Figures::of_steps(format!("sagas of {TENANTS} tenants that share commits"));
    let mut apart = Figures::of_steps(format!("sagas of {TENANTS} tenants"));
    let of_tenants = |share_commits| Some(Tenants { count: TENANTS, share_commits });
    let (native, portable) = (saga::create_order()?, portable::create_order()?);
    for round in 0..options.rounds {
        let file = |name: &str| folder.path().join(format!("{name}-{round}.db"));
        for name in ["one", "grouped", "sagas", "portables", "shared", "apart"] {
            runtime.block_on(create(&file(name)))?;
        }
        let few = (options.sagas / SLOW_SHARE).max(1);
        one_by_one.values.push(floor::run_by_step(&file("one"), few)?);
        grouped.values.push(floor::run_by_saga(&file("grouped"), options.sagas, SAGAS_PER_COMMIT)?);
        let run = |name, saga, tenants| {
            runtime.block_on(saga::run(&file(name), saga, options.sagas, options.in_flight, tenants))
        };
        sagas.values.push(run("sagas", &native, None)?);
        portables.values.push(run("portables", &portable, None)?);
        shared.values.push(run("shared", &native, of_tenants(true))?);
        apart.values.push(run("apart", &native, of_tenants(false))?);
    }
    let targets = [
        Target::at_least("sagas / one step a commit", TIMES_ONE_BY_ONE, sagas.ratio_to(&one_by_one)),
        Target::at_least("sagas / 16 sagas a commit", TIMES_GROUPED, sagas.ratio_to(&grouped)),
        Target::at_least("sagas by SqlConn / sagas", TIMES_NATIVE, portables.ratio_to(&sagas)),
        Target::at_least("tenants that share commits / one tenant", TIMES_SHARED, shared.ratio_to(&sagas)),
        Target::at_least("tenants / one tenant", TIMES_APART, apart.ratio_to(&sagas)),
    ];
    if options.json {
        print_lines(options.in_flight, &sagas, [(ONE_BY_ONE, &one_by_one), (GROUPED, &grouped)]);
        for (subject, figures) in [(PORTABLE, &portables), (SHARED, &shared), (APART, &apart)] {
            print_line(options.in_flight, subject, figures, [(SAGA.to_owned(), figures.ratio_to(&sagas))]);
        }
    } else {
        print_table(&[&one_by_one, &grouped, &sagas, &portables, &shared, &apart]);
    }
    for target in &targets {
        target.print(BENCH, options.json);
    }
    Ok(!options.require || targets.iter().all(Target::is_reached))
}

fn print_header(options: &Options, folder: &Path) -> Result<()> {
    let kind = disk::file_system(folder).unwrap_or_else(|| "unknown file system".to_owned());
    let flush = disk::flush_time(folder)?;
    println!("SQLite, synchronous=FULL, WAL, on {kind}; one flush of 8 kB takes {:.2} ms", flush.as_secs_f64() * 1e3);
    println!(
        "{} sagas of 3 steps a round, {} rounds, interleaved; the median, [the least to the most]\n",
        options.sagas, options.rounds
    );
    Ok(())
}

/// The floors have one connection, which is the one in flight.
fn print_lines(in_flight: u32, sagas: &Figures, floors: [(&str, &Figures); 2]) {
    for (subject, floor) in floors {
        println!("{}", Line::of(BENCH, "W", 1, subject).number("steps_per_s", floor.median(), 0).ratios([]));
    }
    let ratios = floors.map(|(subject, floor)| (subject.to_owned(), sagas.ratio_to(floor)));
    print_line(in_flight, SAGA, sagas, ratios);
}

fn print_line<const N: usize>(in_flight: u32, subject: &str, figures: &Figures, ratios: [(String, f64); N]) {
    let line = Line::of(BENCH, "W", in_flight, subject).number("steps_per_s", figures.median(), 0);
    println!("{}", line.ratios(ratios));
}
