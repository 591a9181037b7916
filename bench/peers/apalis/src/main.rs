//! The order work on apalis, with its workflows on its PostgreSQL store.
//!
//! A saga is a stepped workflow, as in the example `stepped` of apalis-postgres: each step is a task of the queue, and
//! its result is pushed as the next one. A step's row is committed by a connection of ours, the next task and the
//! record that this one is done by the store, so a crash in between repeats the step. It knows nothing of undo: the
//! third step of a declined order pushes a second workflow, on a queue of its own, that refunds and releases.
//!
//! The store hands out tasks in batches (`batch_size`), is told of new ones by NOTIFY (`with_pubsub`), and looks for
//! them now and then by itself (`poll_with_interval`), as that example does. All first tasks are pushed up front, in
//! bulk.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use apalis::prelude::{BackendExt as _, BoxDynError, Data, TaskSink as _, WorkerBuilder, WorkerBuilderExt as _};
use apalis_postgres::{Config, PgPool, PostgresStorage};
use apalis_workflow::SteppedFlow;
use peer_harness::work::{Order, Step};
use peer_harness::{Business, Job, Measured, Meter, Remaining, Subject, wait_until_none};
use sqlx::postgres::PgPoolOptions;

/// The tasks that are fetched at once; it is 10 unless it is set, and more helps a little.
const BATCH_SIZE: usize = 64;

/// A task that was pushed while the worker was busy is found by the next look.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

const OPEN_TASKS: &str = "SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'";

fn main() -> ExitCode {
    peer_harness::main(&[Subject { name: "apalis", is_durable: true, run: |job| Box::pin(run(job)) }])
}

/// What the steps share.
#[derive(Clone)]
struct Steps {
    business: Business,
    remaining: Remaining,
    undos: PostgresStorage<Order>,
}

async fn run(job: Job) -> Result<Measured> {
    let in_flight = usize::try_from(job.in_flight)?;
    // The store's own connections; the steps have others.
    let pool = PgPoolOptions::new().max_connections(job.in_flight).connect(&job.url).await?;
    PostgresStorage::setup(&pool).await?;
    let remaining = Remaining::of(&job);
    let mut orders = storage(&pool, "order");
    let undos = storage(&pool, "undo");
    let steps = Steps { business: Business::connect(&job).await?, remaining: remaining.clone(), undos: undos.clone() };
    let order_worker = WorkerBuilder::new("order-worker")
        .backend(orders.clone().with_pubsub().poll_with_interval(POLL_INTERVAL))
        .data(steps.clone())
        .concurrency(in_flight)
        .build(SteppedFlow::new("order").and_then(reserve).and_then(charge).and_then(confirm));
    let undo_worker = WorkerBuilder::new("undo-worker")
        .backend(undos.with_pubsub().poll_with_interval(POLL_INTERVAL))
        .data(steps)
        .concurrency(in_flight)
        .build(SteppedFlow::new("undo").and_then(refund).and_then(release));

    let first: Vec<Order> = job.orders().collect();
    let meter = Meter::start()?;
    let work = async {
        orders.push_bulk(first).await?;
        remaining.wait().await?;
        wait_until_none(&job.url, OPEN_TASKS).await
    };
    tokio::select! {
        worked = work => worked?,
        ended = order_worker.run() => bail!("the worker of orders ended before its work: {ended:?}"),
        ended = undo_worker.run() => bail!("the worker of undos ended before its work: {ended:?}"),
    }
    meter.stop()
}

fn storage(pool: &PgPool, queue: &str) -> PostgresStorage<Order> {
    PostgresStorage::new(pool).with_config(Config::default().queue(queue).batch_size(BATCH_SIZE))
}

async fn reserve(order: Order, steps: Data<Steps>) -> Result<Order, BoxDynError> {
    steps.business.write(Step::Reserve, &order).await?;
    Ok(order)
}

async fn charge(order: Order, steps: Data<Steps>) -> Result<Order, BoxDynError> {
    steps.business.write(Step::Charge, &order).await?;
    Ok(order)
}

async fn confirm(order: Order, steps: Data<Steps>) -> Result<(), BoxDynError> {
    if order.check().is_err() {
        steps.undos.clone().push(order).await?;
        return Ok(());
    }
    steps.business.write(Step::Confirm, &order).await?;
    steps.remaining.ended();
    Ok(())
}

async fn refund(order: Order, steps: Data<Steps>) -> Result<Order, BoxDynError> {
    steps.business.write(Step::Refund, &order).await?;
    Ok(order)
}

async fn release(order: Order, steps: Data<Steps>) -> Result<(), BoxDynError> {
    steps.business.write(Step::Release, &order).await?;
    steps.remaining.ended();
    Ok(())
}
