// rule: transaction-object
use saga_core::{StepError, saga_step};

struct Transaction<'c>(&'c mut ());

#[saga_step]
async fn reserve_stock(_tx: &mut Transaction<'_>, _order: String) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
