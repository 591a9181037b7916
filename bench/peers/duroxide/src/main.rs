//! The order work on duroxide, with its PostgreSQL provider.
//!
//! A saga is an orchestration, which schedules an activity a step and is replayed from its history after each. A step's
//! row is committed by a connection of ours, and what the activity answered is recorded behind it, so a crash in
//! between repeats the step. It has no undo of its own: as its documentation advises, the orchestration looks at the
//! failure and schedules further activities.
//!
//! All sagas are started up front. Its client waits for an outcome by asking the database again and again; the work is
//! spared that, the last activities are counted instead, and its tables are asked at the end.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use duroxide::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder};
use duroxide::runtime::{ObservabilityConfig, Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use duroxide_pg::PostgresProvider;
use peer_harness::work::{Order, Step};
use peer_harness::{Business, Job, Measured, Meter, Remaining, Subject, start_all, wait_until_none};

/// As its documentation sets them; more of them are no faster.
const ORCHESTRATIONS: usize = 4;
const ACTIVITIES: usize = 8;

/// How long one that found no work waits before it looks again.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

const SHUTDOWN_MS: u64 = 1_000;

const OPEN_SAGAS: &str = "SELECT count(*) FROM executions WHERE status NOT IN ('Completed', 'Failed')";
const WRONG_SAGAS: &str = "SELECT count(*) FROM executions WHERE status <> 'Completed'";

fn main() -> ExitCode {
    peer_harness::main(&[Subject { name: "duroxide", is_durable: true, run: |job| Box::pin(run(job)) }])
}

/// What the activities share.
#[derive(Clone)]
struct Steps {
    business: Business,
    remaining: Remaining,
}

async fn run(job: Job) -> Result<Measured> {
    let provider = Arc::new(PostgresProvider::new(&job.url).await?);
    let remaining = Remaining::of(&job);
    let steps = Steps { business: Business::connect(&job).await?, remaining: remaining.clone() };
    let activities =
        Step::ALL.into_iter().fold(ActivityRegistry::builder(), |builder, step| register(builder, step, &steps));
    let orchestrations = OrchestrationRegistry::builder().register_typed("order", place).build();
    let options = RuntimeOptions {
        orchestration_concurrency: ORCHESTRATIONS,
        worker_concurrency: ACTIVITIES,
        dispatcher_min_poll_interval: POLL_INTERVAL,
        observability: ObservabilityConfig { log_level: "off".to_owned(), ..ObservabilityConfig::default() },
        ..RuntimeOptions::default()
    };
    let runtime =
        Runtime::start_with_options(Arc::clone(&provider) as _, activities.build(), orchestrations, options).await;
    let client = Arc::new(Client::new(Arc::clone(&provider) as _));
    let start = move |order: Order| {
        let client = Arc::clone(&client);
        async move { Ok(client.start_orchestration_typed(format!("order-{}", order.id), "order", order).await?) }
    };

    let meter = Meter::start()?;
    start_all(&job, start).await?;
    remaining.wait().await?;
    wait_until_none(&job.url, OPEN_SAGAS).await?;
    let measured = meter.stop();
    // One that failed is not open either.
    wait_until_none(&job.url, WRONG_SAGAS).await?;
    runtime.shutdown(Some(SHUTDOWN_MS)).await;
    measured
}

/// The orchestration: whether the order was confirmed.
async fn place(context: OrchestrationContext, order: Order) -> Result<bool, String> {
    let act = |step: Step| context.schedule_activity_typed::<Order, ()>(step.table(), &order);
    act(Step::Reserve).await?;
    act(Step::Charge).await?;
    if act(Step::Confirm).await.is_ok() {
        return Ok(true);
    }
    act(Step::Refund).await?;
    act(Step::Release).await?;
    Ok(false)
}

fn register(builder: ActivityRegistryBuilder, step: Step, steps: &Steps) -> ActivityRegistryBuilder {
    let steps = steps.clone();
    let activity = move |_: ActivityContext, order: Order| {
        let steps = steps.clone();
        async move {
            if step == Step::Confirm {
                order.check().map_err(|declined| declined.to_string())?;
            }
            steps.business.write(step, &order).await.map_err(|error| error.to_string())?;
            if matches!(step, Step::Confirm | Step::Release) {
                steps.remaining.ended();
            }
            Ok(())
        }
    };
    builder.register_typed(step.table(), activity)
}
