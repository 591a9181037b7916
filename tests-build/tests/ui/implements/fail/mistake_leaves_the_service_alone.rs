// rule: two-inputs
use saga_core::{Service, StepError, memory::MemoryStore, saga_step, service::ServiceBuilder};

mod contracts {
    #[saga_core::saga_step(service = "payments")]
    pub async fn charge_card(cents: u64) -> Result<String, saga_core::StepError>;
}

#[saga_step(implements = contracts::charge_card)]
async fn charge_card(cents: u64, more: u64) -> Result<String, StepError> {
    Ok((cents + more).to_string())
}

fn payments() -> ServiceBuilder<MemoryStore> {
    Service::named("payments").host::<charge_card>()
}

fn main() {}
