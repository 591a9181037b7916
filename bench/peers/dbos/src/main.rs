//! The order work on DBOS Transact for Rust.
//!
//! A saga is a workflow, started directly and awaited; each step is a DBOS step, which records its output after its
//! body has run. There is no transactional step in the Rust library, so a step's row is committed by a connection of
//! ours, and a crash between that commit and the record of the step repeats the step. DBOS has no undo of its own: as
//! its documentation advises, the workflow's body looks at the failure and runs further steps.
//!
//! Started directly rather than through a queue, which polls and reaches a fraction of this.

use std::process::ExitCode;

use anyhow::Result;
use dbos::{Config, DBOS, step};
use peer_harness::work::{Declined, Order, Step};
use peer_harness::{Business, Job, Measured, Meter, Subject, call_all};
use serde::{Deserialize, Serialize};

fn main() -> ExitCode {
    peer_harness::main(&[Subject { name: "dbos", is_durable: true, run: |job| Box::pin(run(job)) }])
}

/// Why a step failed, as DBOS records it.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Declined(#[from] Declined),
    #[error("{0}")]
    Database(String),
}

async fn run(job: Job) -> Result<Measured> {
    let business = Business::connect(&job).await?;
    let dbos = DBOS::new(Config {
        app_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        max_connections: job.in_flight,
        ..Config::new("peer-dbos", job.url.as_str())
    });
    let workflow = dbos.register_workflow("order", move |order| place(business.clone(), order))?;
    dbos.launch().await?;
    let meter = Meter::start()?;
    let call = move |order| {
        let workflow = workflow.clone();
        async move { Ok(workflow.run(order).await?) }
    };
    call_all(&job, call).await?;
    let measured = meter.stop();
    dbos.shutdown().await;
    measured
}

/// The workflow: whether the order was confirmed.
async fn place(business: Business, order: Order) -> dbos::Result<bool, Failure> {
    do_step(&business, "reserve", Step::Reserve, &order).await?;
    do_step(&business, "charge", Step::Charge, &order).await?;
    match do_step(&business, "confirm", Step::Confirm, &order).await {
        Ok(()) => Ok(true),
        Err(dbos::Error::Application(Failure::Declined(_))) => {
            do_step(&business, "refund", Step::Refund, &order).await?;
            do_step(&business, "release", Step::Release, &order).await?;
            Ok(false)
        }
        Err(other) => Err(other),
    }
}

async fn do_step(business: &Business, name: &str, which: Step, order: &Order) -> dbos::Result<(), Failure> {
    let body = || async move {
        if which == Step::Confirm {
            order.check().map_err(Failure::from)?;
        }
        business.write(which, order).await.map_err(|error| Failure::Database(error.to_string()))?;
        Ok(())
    };
    step(name, body).await
}
