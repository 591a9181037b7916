//! The order work on underway.
//!
//! A saga is a job of three steps. As its documentation advises, a step writes with the transaction that it is given
//! and commits it, so its row and the next step's task are one commit; that the task is done is recorded behind it. It
//! knows nothing of undo: the third step of a declined order enqueues a second job, of two steps, in its transaction.
//!
//! A job's handle that enqueues while a worker made from it runs takes a wrong first step for what it enqueues, and
//! skips steps silently; so the handles that enqueue are others than those that work. The sagas are enqueued up front,
//! by as many callers as there are in flight.

use std::process::ExitCode;

use anyhow::{Result, bail};
use peer_harness::work::{Order, Step};
use peer_harness::{Job, Measured, Meter, Remaining, Subject, start_all, wait_until_none};
use sqlx::Transaction;
use sqlx::postgres::{PgPool, PgPoolOptions, Postgres};
use underway::job::{Context, Job as Chain, To};
use underway::task::{Error as TaskError, Result as TaskResult};

const OPEN_TASKS: &str = "SELECT count(*) FROM underway.task WHERE state IN ('pending', 'in_progress')";

fn main() -> ExitCode {
    peer_harness::main(&[Subject { name: "underway", is_durable: true, run: |job| Box::pin(run(job)) }])
}

/// What the steps of an order share. It is not persisted.
#[derive(Clone)]
struct Ordering {
    remaining: Remaining,
    /// Enqueues undos, and does not work.
    undos: Chain<Order, Undoing>,
}

/// What the steps of an undo share.
#[derive(Clone)]
struct Undoing {
    remaining: Remaining,
}

async fn run(job: Job) -> Result<Measured> {
    // A task that runs holds one connection, and its heartbeat wants another.
    let pool = PgPoolOptions::new().max_connections(2 * job.in_flight + 8).connect(&job.url).await?;
    underway::run_migrations(&pool).await?;
    let remaining = Remaining::of(&job);
    let undoing = Undoing { remaining: remaining.clone() };
    let ordering = Ordering { remaining: remaining.clone(), undos: undo_chain(&pool, undoing.clone()).await? };
    let limit = usize::try_from(job.in_flight)?;
    let mut undo_worker = undo_chain(&pool, undoing).await?.worker();
    undo_worker.set_concurrency_limit(limit);
    let mut order_worker = order_chain(&pool, ordering.clone()).await?.worker();
    order_worker.set_concurrency_limit(limit);
    let orders = order_chain(&pool, ordering).await?;
    let enqueue = move |order| {
        let orders = orders.clone();
        async move { Ok(orders.enqueue(&order).await.map(|_| ())?) }
    };

    let meter = Meter::start()?;
    let work = async {
        start_all(&job, enqueue).await?;
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

async fn order_chain(pool: &PgPool, state: Ordering) -> Result<Chain<Order, Ordering>> {
    let chain = Chain::builder().state(state).step(reserve).step(charge).step(confirm);
    Ok(chain.name("order").pool(pool.clone()).build().await?)
}

async fn undo_chain(pool: &PgPool, state: Undoing) -> Result<Chain<Order, Undoing>> {
    let chain = Chain::builder().state(state).step(refund).step(release);
    Ok(chain.name("undo").pool(pool.clone()).build().await?)
}

async fn reserve(mut context: Context<Ordering>, order: Order) -> TaskResult<To<Order>> {
    write(&mut context.tx, Step::Reserve, &order).await?;
    context.tx.commit().await?;
    To::next(order)
}

async fn charge(mut context: Context<Ordering>, order: Order) -> TaskResult<To<Order>> {
    write(&mut context.tx, Step::Charge, &order).await?;
    context.tx.commit().await?;
    To::next(order)
}

async fn confirm(mut context: Context<Ordering>, order: Order) -> TaskResult<To<()>> {
    if order.check().is_err() {
        let enqueued = context.state.undos.enqueue_using(&mut *context.tx, &order).await;
        enqueued.map_err(|error| TaskError::Retryable(error.to_string()))?;
        context.tx.commit().await?;
    } else {
        write(&mut context.tx, Step::Confirm, &order).await?;
        context.tx.commit().await?;
        context.state.remaining.ended();
    }
    To::done()
}

async fn refund(mut context: Context<Undoing>, order: Order) -> TaskResult<To<Order>> {
    write(&mut context.tx, Step::Refund, &order).await?;
    context.tx.commit().await?;
    To::next(order)
}

async fn release(mut context: Context<Undoing>, order: Order) -> TaskResult<To<()>> {
    write(&mut context.tx, Step::Release, &order).await?;
    context.tx.commit().await?;
    context.state.remaining.ended();
    To::done()
}

async fn write(transaction: &mut Transaction<'_, Postgres>, step: Step, order: &Order) -> Result<(), sqlx::Error> {
    sqlx::query(step.insert()).bind(order.id).bind(order.amount).execute(&mut **transaction).await.map(|_| ())
}
