// rule: receiver
use saga_core::{StepError, saga_step};

struct Shop;

impl Shop {
    #[saga_step]
    async fn charge_card(&self, _order: String) -> Result<u32, StepError> {
        Ok(1)
    }
}

fn main() {}
