// pass: inputs are made of the saga's, and of earlier outputs
use saga_core::memory::MemoryStore;
use saga_core::{Output, Saga, StepError, saga_step};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: String,
    cents: u64,
}

#[saga_step(no_compensation)]
async fn charge(cents: u64) -> Result<u64, StepError> {
    Ok(cents)
}

#[saga_step(no_compensation)]
async fn print(id: String) -> Result<u32, StepError> {
    Ok(u32::try_from(id.len())?)
}

#[saga_step]
async fn send(letter: (String, u64, u32)) -> Result<(), StepError> {
    drop(letter);
    Ok(())
}

fn order() -> Saga<MemoryStore, Order> {
    Saga::named("order")
        .input::<Order>()
        .step_from::<charge, _>(|order: &Order| order.cents)
        .step_from::<print, _>(|order: &Order| order.id.clone())
        .step_from::<send, _>(|order: &Order, Output(paid): Output<charge>, Output(pages): Output<print>| (order.id.clone(), paid, pages))
        .build()
        .expect("order is a valid saga")
}

#[test]
fn closures_need_no_types() {
    assert_eq!(order().name(), "order");
}
