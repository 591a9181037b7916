//! The order work on Graphile Worker for Rust.
//!
//! A saga is a chain of jobs, each of which adds the next one. As its documentation advises, a job's row and the job
//! that follows are written in one transaction of ours (`with_executor`); that the job itself is done is recorded
//! afterwards, so a crash in between repeats the step. It knows nothing of undo: the third job of a declined order
//! adds the job that refunds, and that one the job that releases.
//!
//! The worker is the documentation's "throughput-oriented" one: a local queue that fetches jobs in batches, and
//! completions batched over 5 ms. All first jobs are added up front, in one batch.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, WorkerContext, WorkerContextExt, WorkerOptions,
};
use peer_harness::work::{Order, Step};
use peer_harness::{Business, Job, Measured, Meter, Remaining, Subject, wait_until_none};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;

/// What the documentation's examples of throughput have.
const BATCH_DELAY: Duration = Duration::from_millis(5);
const LOCAL_QUEUE_SIZE: usize = 100;
const LOCAL_QUEUE_TTL: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Jobs that are done are deleted.
const OPEN_JOBS: &str = "SELECT count(*) FROM graphile_worker.jobs";

fn main() -> ExitCode {
    let subject = Subject { name: "graphile_worker", is_durable: true, run: |job| Box::pin(run(job)) };
    peer_harness::main(&[subject])
}

async fn run(job: Job) -> Result<Measured> {
    let in_flight = usize::try_from(job.in_flight)?;
    // A connection for each job that runs, and a few for the worker itself.
    let pool = PgPoolOptions::new().max_connections(job.in_flight + 4).connect(&job.url).await?;
    let remaining = Remaining::of(&job);
    let options = WorkerOptions::default()
        .concurrency(in_flight)
        .poll_interval(POLL_INTERVAL)
        .complete_job_batch_delay(BATCH_DELAY)
        .fail_job_batch_delay(BATCH_DELAY)
        .local_queue(LocalQueueConfig::default().with_size(LOCAL_QUEUE_SIZE.max(in_flight)).with_ttl(LOCAL_QUEUE_TTL))
        .define_job::<Reserve>()
        .define_job::<Charge>()
        .define_job::<Confirm>()
        .define_job::<Refund>()
        .define_job::<Release>()
        .add_extension(remaining.clone())
        .listen_os_shutdown_signals(false)
        .pg_pool(pool);
    // What it does until it is ready is large.
    let worker = Box::pin(options.init()).await?;
    let utils = worker.create_utils();
    let spec = JobSpec::default();
    let first: Vec<(Reserve, &JobSpec)> = job.orders().map(|order| (Reserve(order), &spec)).collect();
    let meter = Meter::start()?;
    let work = async {
        utils.add_jobs(&first).await?;
        remaining.wait().await?;
        wait_until_none(&job.url, OPEN_JOBS).await
    };
    tokio::select! {
        done = work => done?,
        ended = worker.run() => {
            ended?;
            bail!("the worker ended before its work");
        }
    }
    meter.stop()
}

/// Declares the jobs: the order is their payload.
macro_rules! jobs {
    ($($name:ident $identifier:literal $run:expr;)*) => {$(
        #[derive(Debug, Clone, Serialize, Deserialize)]
        struct $name(Order);

        impl TaskHandler for $name {
            const IDENTIFIER: &'static str = $identifier;

            async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
                $run(&context, &self.0).await.map_err(|error: anyhow::Error| format!("{error:#}"))
            }
        }
    )*};
}

jobs! {
    Reserve "reserve" reserve;
    Charge "charge" charge;
    Confirm "confirm" confirm;
    Refund "refund" refund;
    Release "release" release;
}

async fn reserve(context: &WorkerContext, order: &Order) -> Result<()> {
    write_then(context, Step::Reserve, order, Charge(*order)).await
}

async fn charge(context: &WorkerContext, order: &Order) -> Result<()> {
    write_then(context, Step::Charge, order, Confirm(*order)).await
}

async fn confirm(context: &WorkerContext, order: &Order) -> Result<()> {
    match order.check() {
        Ok(()) => write_last(context, Step::Confirm, order).await,
        Err(_) => Ok(context.add_job(Refund(*order), JobSpec::default()).await.map(|_| ())?),
    }
}

async fn refund(context: &WorkerContext, order: &Order) -> Result<()> {
    write_then(context, Step::Refund, order, Release(*order)).await
}

async fn release(context: &WorkerContext, order: &Order) -> Result<()> {
    write_last(context, Step::Release, order).await
}

/// Writes the row of `step` and adds the next job, both or neither.
async fn write_then<N: TaskHandler + 'static>(
    context: &WorkerContext,
    step: Step,
    order: &Order,
    next: N,
) -> Result<()> {
    let mut transaction = context.pg_pool().begin().await?;
    Business::write_with(&mut *transaction, step, order).await?;
    context.utils().with_executor(&mut transaction).add_job(next, JobSpec::default()).await?;
    Ok(transaction.commit().await?)
}

/// Writes the row of a saga's last step.
async fn write_last(context: &WorkerContext, step: Step, order: &Order) -> Result<()> {
    Business::write_with(context.pg_pool(), step, order).await?;
    context.get_ext::<Remaining>().context("the worker has no count of the sagas")?.ended();
    Ok(())
}
