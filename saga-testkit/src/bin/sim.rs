//! Runs seeded schedules of the whole engine, with faults, and judges each of them.
//!
//! `sim [--seeds N] [--seed-from S | --fresh] [--load | --retention] [--mutant MISTAKE] [--threads T] [--json]` runs many: with
//! `--fresh` from a seed that it draws and prints, with `--load` only those with more work than lines, with `--retention` only
//! those in which ended sagas are purged, with `--mutant` with a mistake that is to be found. `sim --seed X` runs one and prints
//! what happened.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use saga_testkit::sim::{Fault, Mutant, Report, SAGAS_MIN, has_load, has_retention, run, run_logged, run_mutant};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// From so many schedules on, a fault that was never hit fails the run.
const EVERY_FAULT_FROM: u64 = 5_000;
/// One schedule in so many is run twice and compared.
const REPEATED: u64 = 100;
/// How many failing seeds are shown.
const SHOWN: u64 = 5;

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)) {
        Ok(Arguments { seed: Some(seed), .. }) => one(seed),
        Ok(arguments) => many(&arguments),
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

const USAGE: &str = "usage: sim [--seeds N] [--seed-from S | --fresh] [--load | --retention] [--mutant MISTAKE] [--threads T] [--json] | sim --seed X";
/// Seeds are drawn below this, so that they are short enough to be copied by hand.
const FRESH_BELOW: u64 = 1_000_000_000_000;

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
struct Arguments {
    seeds: u64,
    seed_from: u64,
    threads: usize,
    seed: Option<u64>,
    is_fresh: bool,
    is_load: bool,
    is_retention: bool,
    mutant: Option<Mutant>,
    json: bool,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let mut arguments = Self {
            seeds: 1_000,
            seed_from: 0,
            threads,
            seed: None,
            is_fresh: false,
            is_load: false,
            is_retention: false,
            mutant: None,
            json: false,
        };
        let mut names: Vec<String> = Vec::new();
        while let Some(name) = given.next() {
            if names.contains(&name) {
                return Err(format!("`{name}` is given twice"));
            }
            match name.as_str() {
                "--json" => arguments.json = true,
                "--fresh" => arguments.is_fresh = true,
                "--load" => arguments.is_load = true,
                "--retention" => arguments.is_retention = true,
                "--mutant" => arguments.mutant = Some(mutant_of(given.next())?),
                "--seeds" | "--seed-from" | "--threads" | "--seed" => arguments.set(&name, given.next())?,
                _ => return Err(format!("there is no option `{name}`")),
            }
            names.push(name);
        }
        let is_given = |name: &str| names.iter().any(|given| given == name);
        if arguments.is_fresh && is_given("--seed-from") {
            return Err(
                "`--fresh` draws the seed to begin from; `--seed-from` repeats a run from one that it printed".into()
            );
        }
        if let Some(other) = names.iter().find(|name| is_given("--seed") && *name != "--seed") {
            return Err(format!("`--seed` runs one schedule and prints it; `{other}` is for many"));
        }
        if arguments.is_fresh {
            // Each state of the standard library's hash maps is seeded from the operating system.
            arguments.seed_from = RandomState::new().hash_one(0) % FRESH_BELOW;
        }
        Ok(arguments)
    }

    fn set(&mut self, name: &str, value: Option<String>) -> Result<(), String> {
        let value = value.ok_or_else(|| format!("`{name}` needs a value"))?;
        let number: u64 = value.parse().map_err(|_| format!("`{name} {value}`: not a whole number"))?;
        if number == 0 && (name == "--seeds" || name == "--threads") {
            return Err(format!("`{name} 0`: at least 1 is needed"));
        }
        match name {
            "--seeds" => self.seeds = number,
            "--seed-from" => self.seed_from = number,
            "--threads" => self.threads = usize::try_from(number).unwrap_or(1),
            _ => self.seed = Some(number),
        }
        Ok(())
    }
}

fn mutant_of(name: Option<String>) -> Result<Mutant, String> {
    let name = name.ok_or("`--mutant` needs a value")?;
    let known = || Mutant::ALL.iter().map(|mutant| format!("{mutant:?}"));
    let found = Mutant::ALL.iter().find(|mutant| format!("{mutant:?}") == name);
    found
        .copied()
        .ok_or_else(|| format!("there is no mistake `{name}`; there are {}", known().collect::<Vec<_>>().join(", ")))
}

/// Runs one schedule and prints its ledger.
fn one(seed: u64) -> ExitCode {
    let (report, log) = run_logged(seed);
    println!("{:#?}", report.scenario);
    for (saga, plan) in report.ledger.sagas.iter().enumerate() {
        println!("saga #{saga}: {}/{} {:?}", plan.tenant, plan.key, plan.variants.first().map(|one| &one.definition));
    }
    let entries = report.ledger.entries.iter();
    let entries = entries.map(|entry| (entry.at, format!("p{:<3} {:?}", entry.process, entry.what)));
    let mut lines: Vec<(u64, String)> =
        entries.chain(log.into_iter().map(|(at, line)| (at, format!("     {line}")))).collect();
    lines.sort_by_key(|line| line.0);
    for (at, line) in lines {
        println!("{:>8}.{:03} ms  {line}", at / 1_000, at % 1_000);
    }
    for (saga, end) in report.ledger.finals.iter().enumerate() {
        println!("saga #{saga}: {:?}, variant {:?}, overdue at {:?}", end.standing, end.variant, end.overdue_at);
        for record in &end.records {
            println!("    {record:?}");
        }
    }
    println!("{:?}", report.ledger.rest);
    println!("{} polls, {:?} of virtual time, fingerprint {:016x}", report.polls, report.time, report.fingerprint());
    if report.violations.is_empty() {
        println!("nothing is broken");
        return ExitCode::SUCCESS;
    }
    print_violations(&report);
    ExitCode::FAILURE
}

fn print_violations(report: &Report) {
    println!("seed {}:", report.scenario.seed);
    for violation in &report.violations {
        println!("    {violation}");
    }
    println!("    replay: cargo xtask sim --seed {}", report.scenario.seed);
}

/// What many schedules add up to.
#[derive(Debug, Default)]
struct Sum {
    hits: Vec<u64>,
    schedules: Vec<u64>,
    count: u64,
    sagas: u64,
    sagas_min: u64,
    polls: u64,
    time: Duration,
    failed: u64,
    unequal: Vec<u64>,
}

impl Sum {
    fn new() -> Self {
        let none = || vec![0; Fault::ALL.len()];
        Self { hits: none(), schedules: none(), sagas_min: u64::MAX, ..Self::default() }
    }

    fn add(&mut self, report: &Report) {
        for (at, hits) in report.hits.iter().enumerate() {
            self.hits[at] += hits;
            self.schedules[at] += u64::from(*hits > 0);
        }
        self.count += 1;
        let sagas = report.scenario.sagas.len() as u64;
        self.sagas += sagas;
        self.sagas_min = self.sagas_min.min(sagas);
        self.polls += report.polls;
        self.time += report.time;
        self.failed += u64::from(!report.violations.is_empty());
    }

    fn join(&mut self, other: Self) {
        for at in 0..self.hits.len() {
            self.hits[at] += other.hits[at];
            self.schedules[at] += other.schedules[at];
        }
        self.count += other.count;
        self.sagas += other.sagas;
        self.sagas_min = self.sagas_min.min(other.sagas_min);
        self.polls += other.polls;
        self.time += other.time;
        self.failed += other.failed;
        self.unequal.extend(other.unequal);
    }

    fn never_hit(&self) -> Vec<&'static str> {
        let unhit = Fault::ALL.iter().filter(|fault| self.hits[**fault as usize] == 0);
        unhit.map(|fault| fault.name()).collect()
    }
}

fn many(arguments: &Arguments) -> ExitCode {
    if arguments.is_fresh {
        // On the other stream, since with `--json` the result is the only line on standard output.
        eprintln!(
            "{} fresh schedules from seed {}; again: cargo xtask sim --seeds {} --seed-from {}",
            arguments.seeds, arguments.seed_from, arguments.seeds, arguments.seed_from
        );
    }
    #[expect(clippy::disallowed_methods, reason = "the rate is a person's waiting time; nothing simulated reads it")]
    let begun = std::time::Instant::now();
    let next = AtomicU64::new(arguments.seed_from);
    let end = arguments.seed_from.saturating_add(arguments.seeds);
    let (sum, shown) = (Mutex::new(Sum::new()), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| {
                let mut own = Sum::new();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    if (arguments.is_load && !has_load(seed)) || (arguments.is_retention && !has_retention(seed)) {
                        continue;
                    }
                    let report = match arguments.mutant {
                        Some(mutant) => run_mutant(seed, mutant),
                        None => run(seed),
                    };
                    own.add(&report);
                    if arguments.mutant.is_none()
                        && seed.is_multiple_of(REPEATED)
                        && run(seed).fingerprint() != report.fingerprint()
                    {
                        own.unequal.push(seed);
                    }
                    if !report.violations.is_empty() && shown.fetch_add(1, Ordering::Relaxed) < SHOWN {
                        print_violations(&report);
                    }
                }
                sum.lock().unwrap_or_else(PoisonError::into_inner).join(own);
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    conclude(arguments, &sum, begun.elapsed())
}

fn conclude(arguments: &Arguments, sum: &Sum, elapsed: Duration) -> ExitCode {
    let rate = u128::from(sum.count) * 1_000 / elapsed.as_millis().max(1);
    let never_hit = if sum.count >= EVERY_FAULT_FROM && !(arguments.is_load || arguments.is_retention) {
        sum.never_hit()
    } else {
        Vec::new()
    };
    if sum.count == 0 {
        eprintln!("none of the {} seeds is one of these schedules; give more with --seeds", arguments.seeds);
        return ExitCode::FAILURE;
    }
    let is_good = sum.failed == 0 && sum.unequal.is_empty() && never_hit.is_empty() && sum.sagas_min >= SAGAS_MIN;
    if arguments.json {
        let faults: serde_json::Map<String, serde_json::Value> =
            Fault::ALL.iter().map(|fault| (fault.name().to_owned(), sum.hits[*fault as usize].into())).collect();
        let line = serde_json::json!({
            "seeds": arguments.seeds,
            "seed_from": arguments.seed_from,
            "failed": sum.failed,
            "unequal": sum.unequal,
            "never_hit": never_hit,
            "sagas": sum.sagas,
            "sagas_min": sum.sagas_min,
            "schedules_per_second": rate as u64,
            "virtual_seconds": sum.time.as_secs(),
            "faults": faults,
        });
        println!("{line}");
    } else {
        println!("{:<28} {:>12} {:>12}", "what happened", "times", "schedules");
        for fault in Fault::ALL {
            let at = *fault as usize;
            println!("{:<28} {:>12} {:>12}", fault.name(), sum.hits[at], sum.schedules[at]);
        }
        println!(
            "{} schedules from seed {}, {} a second on {} threads; {} sagas, at least {} a schedule; {} polls; \
             {} virtual hours",
            sum.count,
            arguments.seed_from,
            rate,
            arguments.threads,
            sum.sagas,
            sum.sagas_min,
            sum.polls,
            sum.time.as_secs() / 3600
        );
    }
    if sum.failed > 0 {
        println!("{} schedules broke a guarantee", sum.failed);
    }
    for seed in &sum.unequal {
        println!("seed {seed} was not the same when it ran again");
    }
    for fault in never_hit {
        println!("never hit: {fault}");
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
