// rule: hosted
use saga_core::{memory::MemoryStore, Service, service::ServiceBuilder};

mod contracts {
    #[saga_core::saga_step(service = "payments")]
    pub async fn charge_card(cents: u64) -> Result<String, saga_core::StepError>;
}

fn payments() -> ServiceBuilder<MemoryStore> {
    Service::named("payments").host::<contracts::charge_card>()
}

fn main() {}
