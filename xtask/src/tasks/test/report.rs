//! What the test programs printed, and how many tests passed.

use std::num::NonZero;

use anyhow::{Result, bail};
use saga_servers::Addresses;

use super::failures::last_words;
use super::lanes::{Ended, Job, side_by_side};
use super::totals::Totals;

/// How many test programs run at once for each processor: they wait more than they compute.
const LANES_PER_PROCESSOR: usize = 1;

/// Runs `jobs` side by side, prints what each printed when it ended, and fails at the end with the names of the failed.
pub(super) async fn run_jobs(mut jobs: Vec<Job>, addresses: &Addresses) -> Result<String> {
    for job in &mut jobs {
        job.command.envs(addresses.variables());
    }
    let lanes = std::thread::available_parallelism().map_or(1, NonZero::get) * LANES_PER_PROCESSOR;
    let (mut totals, mut failed, mut titles) = (Totals::default(), Vec::new(), Vec::new());
    side_by_side(jobs, lanes, |Ended { title, status, took, output }| {
        println!("\n--- {title}: {status}, {:.1} s\n{output}", took.as_secs_f64());
        output.lines().for_each(|line| totals.add(line));
        if !status.success() {
            failed.push(format!("{title}\n{}", last_words(&output)));
            titles.push(title);
        }
    })
    .await?;
    println!("\n{}", totals.note());
    if !failed.is_empty() {
        bail!("{}; failed:\n{}\nThese programs failed:\n{}", totals.note(), failed.join("\n"), titles.join("\n"));
    }
    if totals.passed == 0 {
        bail!("not one test was run");
    }
    Ok(totals.note())
}
