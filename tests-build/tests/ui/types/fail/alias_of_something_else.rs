// rule: alias
use saga_core::saga_step;

struct LabResult;

#[saga_step]
async fn charge_card(_order: String) -> LabResult {
    LabResult
}

fn main() {}
