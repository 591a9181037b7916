// rule: not-async
use saga_core::{StepError, saga_step};

#[saga_step]
fn charge_card(_order: String) -> impl Future<Output = Result<u32, StepError>> {
    std::future::ready(Ok(1))
}

fn main() {}
