use std::time::{Duration, SystemTime};

use saga_core::saga::SagaError;
use saga_core::{Output, Saga, Signal, Signaled, StepError, Wait, memory::MemoryStore, saga_step};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    ends: SystemTime,
    is_large: bool,
}

#[derive(Serialize, Deserialize)]
enum Approval {
    Granted { by: String },
    NoAnswer,
}

impl Signal for Approval {
    const NAME: &'static str = "approval";
}

#[saga_step(no_compensation, give_up_after = "10m")]
async fn ask(_order: Order) -> Result<Duration, StepError> {
    Ok(Duration::from_secs(1))
}

#[saga_step]
async fn place(_order: Order, approval: Option<Signaled<Approval>>) -> Result<(), StepError> {
    match approval {
        Some(Signaled(Approval::Granted { .. })) | None => Ok(()),
        Some(Signaled(Approval::NoAnswer)) => Err(StepError::reject("nobody answered")),
    }
}

fn order() -> Result<Saga<MemoryStore, Order>, SagaError> {
    Saga::named("order")
        .input::<Order>()
        .deadline(Duration::from_hours(100))
        .step::<ask>()
        .sleep_from("a-while", |_: &Order, Output(time): Output<ask>| time)
        .parallel(|group| {
            group.branch(|branch| branch.sleep("rest", Duration::from_secs(1))).branch(|branch| {
                branch.sleep_until("its-end", |order: &Order| order.ends)
            })
        })
        .when(
            "is-large",
            |order: &Order| order.is_large,
            |branch| branch.wait_for::<Approval>(Wait::within(Duration::from_hours(48)).or(|_: &Order| Approval::NoAnswer)),
        )
        .step::<place>()
        .build()
}

#[test]
fn what_waits_stands_where_steps_do() {
    assert_eq!(order().expect("it is a valid saga").name(), "order");
}
