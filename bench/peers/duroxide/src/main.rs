//! The order work on duroxide, with its PostgreSQL provider.
//!
//! A saga is an orchestration, and each step an activity that it schedules and whose result is recorded. A step's row
//! is committed by a connection of ours, so a crash between that commit and the record repeats the step. It has no undo
//! of its own: as its orchestration guide advises, the orchestration looks at the failure and schedules the undos.
//!
//! All orchestrations are started up front, by as many callers as there are in flight, and then awaited one after the
//! other. The provider has the ten connections that it comes with.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use duroxide::providers::Provider;
use duroxide::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder};
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use duroxide_pg::PostgresProvider;
use peer_harness::work::{Declined, Order, Step};
use peer_harness::{Business, Job, Measured, Meter, Subject, start_all};

/// More dispatchers than this make nothing faster.
const DISPATCHERS_MAX: u32 = 16;

/// How long the end of one orchestration may take once those before it have ended.
const PATIENCE: Duration = Duration::from_mins(5);

fn main() -> ExitCode {
    peer_harness::main(&[Subject { name: "duroxide", is_durable: true, run: |job| Box::pin(run(job)) }])
}

async fn run(job: Job) -> Result<Measured> {
    let business = Business::connect(&job).await?;
    let provider: Arc<dyn Provider> = Arc::new(PostgresProvider::new(&job.url).await?);
    let dispatchers = usize::try_from(job.in_flight.min(DISPATCHERS_MAX))?;
    let options = RuntimeOptions {
        orchestration_concurrency: dispatchers,
        worker_concurrency: dispatchers,
        ..RuntimeOptions::default()
    };
    let orchestrations = OrchestrationRegistry::builder().register_typed("order", place).build();
    let runtime =
        Runtime::start_with_options(Arc::clone(&provider), activities(&business), orchestrations, options).await;

    let client = Client::new(provider);
    let starter = client.clone();
    let meter = Meter::start()?;
    start_all(&job, move |order| {
        let client = starter.clone();
        async move { Ok(client.start_orchestration_typed(&instance(&order), "order", order).await?) }
    })
    .await?;
    for order in job.orders() {
        let ended = client.wait_for_orchestration_typed::<bool>(&instance(&order), PATIENCE).await?;
        let is_confirmed = ended.map_err(|error| anyhow!("the saga of order {} failed: {error}", order.id))?;
        ensure!(is_confirmed != order.is_declined, "order {} ended the wrong way", order.id);
    }
    let measured = meter.stop();
    runtime.shutdown(None).await;
    measured
}

fn instance(order: &Order) -> String {
    format!("order-{}", order.id)
}

/// The orchestration: whether the order was confirmed.
async fn place(context: OrchestrationContext, order: Order) -> Result<bool, String> {
    context.schedule_activity_typed::<_, ()>("reserve", &order).await?;
    context.schedule_activity_typed::<_, ()>("charge", &order).await?;
    match context.schedule_activity_typed::<_, ()>("confirm", &order).await {
        Ok(()) => Ok(true),
        Err(error) if error == Declined.to_string() => {
            context.schedule_activity_typed::<_, ()>("refund", &order).await?;
            context.schedule_activity_typed::<_, ()>("release", &order).await?;
            Ok(false)
        }
        Err(other) => Err(other),
    }
}

fn activities(business: &Business) -> ActivityRegistry {
    let named = [
        ("reserve", Step::Reserve),
        ("charge", Step::Charge),
        ("confirm", Step::Confirm),
        ("refund", Step::Refund),
        ("release", Step::Release),
    ];
    let register = |registry, (name, step)| {
        let business = business.clone();
        let activity = move |_: ActivityContext, order: Order| write(business.clone(), step, order);
        ActivityRegistryBuilder::register_typed(registry, name, activity)
    };
    named.into_iter().fold(ActivityRegistry::builder(), register).build()
}

async fn write(business: Business, step: Step, order: Order) -> Result<(), String> {
    if step == Step::Confirm {
        order.check().map_err(|declined| declined.to_string())?;
    }
    business.write(step, &order).await.map_err(|error| error.to_string())
}
