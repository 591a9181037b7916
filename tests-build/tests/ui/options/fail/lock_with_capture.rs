// rule: lock-entities
use saga_core::{Entity, StepError, saga_step};

fn in_shop(shop: u32) {
    #[saga_step(lock = |account| Entity::new(format!("account-of-{shop}"), account), no_compensation)]
    async fn charge(_account: String) -> Result<u64, StepError> {
        Ok(1)
    }
}

fn main() {}
