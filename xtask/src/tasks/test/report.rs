//! What the test programs printed, and how many tests passed.

use std::cell::RefCell;
use std::num::NonZero;

use anyhow::{Result, bail};
use saga_servers::Addresses;

use super::lanes::{Ended, Job, queue, side_by_side};
use super::last_lines::{failed_tests, last_paragraph, last_words};
use super::totals::Totals;

/// How many test programs run at once for each processor: they wait more than they compute.
const LANES_PER_PROCESSOR: usize = 1;

/// Runs `jobs` side by side, and beside them those of the `background`, when these are built, two at a time, since large parts of
/// each use one processor only. Prints what each failed job printed when it ended, and of the others the last paragraph. Fails at
/// the end with the names of the failed programs and tests.
pub(super) async fn run_jobs(
    mut jobs: Vec<Job>,
    background: impl Future<Output = Result<Vec<Job>>>,
    addresses: &Addresses,
) -> Result<String> {
    for job in &mut jobs {
        job.command.envs(addresses.variables());
    }
    let lanes = std::thread::available_parallelism().map_or(1, NonZero::get) * LANES_PER_PROCESSOR;
    let ended = RefCell::new(Report::default());
    let report = |job| ended.borrow_mut().add(job);
    let jobs = queue(jobs);
    let background = async {
        let waiting = queue(background.await?);
        // Where one has no more to do, nothing else would use its processor time.
        let lane = async || {
            side_by_side(&waiting, 1, report).await?;
            side_by_side(&jobs, 1, report).await
        };
        tokio::try_join!(lane(), lane()).map(drop)
    };
    tokio::try_join!(side_by_side(&jobs, lanes, report), background)?;
    let Report { totals, failed, titles } = ended.into_inner();
    println!("\n{}", totals.note());
    if !failed.is_empty() {
        bail!("{}; failed:\n{}\nThese programs failed:\n{}", totals.note(), failed.join("\n"), titles.join("\n"));
    }
    if totals.passed == 0 {
        bail!("not one test was run");
    }
    Ok(totals.note())
}

/// What the jobs that ended printed.
#[derive(Debug, Default)]
struct Report {
    totals: Totals,
    failed: Vec<String>,
    titles: Vec<String>,
}

impl Report {
    fn add(&mut self, job: Ended) {
        let (is_success, how) = (job.is_success(), job.how());
        let Ended { title, took, output, .. } = job;
        let shown = if is_success { last_paragraph(&output) } else { output.clone() };
        println!("\n--- {title}: {how}, {:.1} s\n{shown}", took.as_secs_f64());
        output.lines().for_each(|line| self.totals.add(line));
        if !is_success {
            self.failed.push(format!("{title}: {how}\n{}", last_words(&output)));
            self.titles.push([&[&*title], &*failed_tests(&output)].concat().join(" "));
        }
    }
}
