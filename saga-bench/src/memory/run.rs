//! The contenders in rounds, at several loads, and their results.

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::work::STEPS_PER_SAGA;
use super::{direct, saga};
use crate::cpu;
use crate::figures::{Figures, Target, print_table};
use crate::line::Line;

const BENCH: &str = "memory";
/// What the sagas are to reach at any load.
const STEPS_PER_SECOND: f64 = 200_000.0;
/// On so many cores.
const CORES: f64 = 2.0;
/// A saga costs so many times the bare calls, so that these get so many more.
const DIRECT_SHARE: u32 = 10;

/// How the benchmark is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Sagas of three steps a round.
    #[arg(long, default_value_t = 100_000)]
    sagas: u32,
    /// Sagas in flight at a time, one load after the other.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64, 256])]
    in_flight: Vec<u32>,
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
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if !options.json {
        println!("Sagas of three steps that write nothing, on the store in memory");
        println!(
            "{} sagas a round, {} rounds, interleaved; the median, [the least to the most]\n",
            options.sagas, options.rounds
        );
    }
    let mut loads: Vec<Load> = options.in_flight.iter().copied().map(Load::new).collect();
    for _ in 0..options.rounds {
        for load in &mut loads {
            runtime.block_on(load.measure(options.sagas))?;
        }
    }
    for load in &loads {
        load.print(options.json);
    }
    let targets: Vec<Target> = loads.iter().map(Load::target).collect();
    for target in &targets {
        target.print(BENCH, options.json);
    }
    Ok(!options.require || targets.iter().all(Target::is_reached))
}

/// What was measured with so many sagas in flight.
struct Load {
    in_flight: u32,
    direct: Rate,
    sagas: Rate,
}

/// Steps a second, and what one costs.
struct Rate {
    subject: &'static str,
    steps: Figures,
    /// What the same processor time would do on idle cores.
    undisturbed: Figures,
    cpu: Figures,
}

impl Load {
    fn new(in_flight: u32) -> Self {
        let rate = |subject, name: &str| Rate {
            subject,
            steps: Figures::of_steps(format!("{name}, {in_flight} in flight")),
            undisturbed: Figures::of_steps(format!("{name}, {CORES} cores of processor time")),
            cpu: Figures::of_cpu(format!("{name}, {in_flight} in flight")),
        };
        Self { in_flight, direct: rate("direct", "the functions, called by tasks"), sagas: rate("saga", "sagas") }
    }

    async fn measure(&mut self, sagas: u32) -> Result<()> {
        let (more, in_flight) = (sagas * DIRECT_SHARE, self.in_flight);
        self.direct.measure(more, direct::run(more, in_flight)).await?;
        self.sagas.measure(sagas, saga::run(sagas, in_flight)).await
    }

    fn print(&self, is_json: bool) {
        if is_json {
            for rate in [&self.direct, &self.sagas] {
                println!("{}", rate.line(self.in_flight, &self.direct));
            }
            return;
        }
        print_table(&[&self.direct.steps, &self.sagas.steps, &self.sagas.undisturbed]);
        print_table(&[&self.direct.cpu, &self.sagas.cpu]);
        println!();
    }

    fn target(&self) -> Target {
        let name = format!("steps/s, {} in flight", self.in_flight);
        Target::at_least(name, STEPS_PER_SECOND, self.sagas.steps.median())
    }
}

impl Rate {
    async fn measure(&mut self, sagas: u32, run: impl Future<Output = Result<Duration>>) -> Result<()> {
        let before = cpu::of_this_process()?;
        let took = run.await?;
        let spent = cpu::of_this_process()?.saturating_sub(before);
        let steps = f64::from(sagas * STEPS_PER_SAGA);
        self.steps.values.push(steps / took.as_secs_f64());
        self.undisturbed.values.push(steps * CORES / spent.as_secs_f64());
        self.cpu.values.push(spent.as_secs_f64() * 1e3 / steps);
        Ok(())
    }

    fn line(&self, in_flight: u32, direct: &Self) -> Line {
        let line = Line::of(BENCH, "W-tiny", in_flight, self.subject).number("steps_per_s", self.steps.median(), 0);
        let is_compared = self.subject != direct.subject;
        let ratio = is_compared.then(|| (direct.subject.to_owned(), self.steps.ratio_to(&direct.steps)));
        line.ratios(ratio).number("cpu_ms_per_step", self.cpu.median(), 5)
    }
}
