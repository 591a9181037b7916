// rule: event-input
use saga_core::{Event, Service, StepError, choreography::EventStep, memory::MemoryStore, saga_step};

#[derive(serde::Serialize, serde::Deserialize)]
struct OrderPlaced(u64);

impl Event for OrderPlaced {
    const NAME: &'static str = "order-placed";
}

#[saga_step]
async fn charge_card(_cents: u64) -> Result<u64, StepError> {
    Ok(1)
}

fn service() -> EventStep<MemoryStore, charge_card> {
    Service::named("payments").on::<OrderPlaced>().run::<charge_card>()
}

fn main() {}
