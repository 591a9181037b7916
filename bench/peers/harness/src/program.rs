//! The program that each peer is.

use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use clap::Parser as _;
use serde::Serialize;

use crate::arguments::{Arguments, Command, RunOptions};
use crate::business::{check_rows, create_tables};
use crate::job::Job;
use crate::meter::Measured;
use crate::subject::Subject;

/// How many digits of the seconds are told.
const SECONDS_SCALE: f64 = 10_000.0;

/// Reads the command line and does what it says; the result of a run is one line of JSON on standard output.
pub fn main(subjects: &[Subject]) -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Subjects => {
            for subject in subjects {
                println!("{}", subject.name);
            }
            Ok(())
        }
        Command::Run(options) => run(subjects, &options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The line that a run ends with.
#[derive(Debug, Serialize)]
struct Report {
    subject: &'static str,
    work: &'static str,
    in_flight: u32,
    sagas: u32,
    steps: u32,
    seconds: f64,
    client_cpu_seconds: f64,
    durable: bool,
}

fn run(subjects: &[Subject], options: &RunOptions) -> Result<()> {
    let subject = named(subjects, &options.subject)?;
    let job = Job { url: options.url.clone(), in_flight: options.in_flight, sagas: options.sagas, work: options.work };
    let runtime = tokio::runtime::Runtime::new().context("cannot start the asynchronous runtime")?;
    let measured = runtime.block_on(async {
        tokio::select! {
            measured = measure(subject, &job) => measured,
            // What the run has started, say a server, ends with it.
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Into::into).and(Err(anyhow!("interrupted"))),
        }
    });
    // A peer's own tasks may wait for ever.
    runtime.shutdown_background();
    let measured = measured?;
    let rounded = |seconds: f64| (seconds * SECONDS_SCALE).round() / SECONDS_SCALE;
    let report = Report {
        subject: subject.name,
        work: job.work.name(),
        in_flight: job.in_flight,
        sagas: job.sagas,
        steps: job.steps(),
        seconds: rounded(measured.elapsed.as_secs_f64()),
        client_cpu_seconds: rounded(measured.cpu.as_secs_f64()),
        durable: subject.is_durable,
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

async fn measure(subject: &Subject, job: &Job) -> Result<Measured> {
    create_tables(&job.url).await?;
    let measured = (subject.run)(job.clone()).await.with_context(|| format!("{} failed", subject.name))?;
    check_rows(job).await.with_context(|| format!("{} did not do the work", subject.name))?;
    Ok(measured)
}

fn named<'s>(subjects: &'s [Subject], name: &str) -> Result<&'s Subject> {
    subjects.iter().find(|subject| subject.name == name).with_context(|| {
        let names: Vec<&str> = subjects.iter().map(|subject| subject.name).collect();
        format!("there is no subject `{name}` here; there are {}", names.join(", "))
    })
}
