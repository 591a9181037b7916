// rule: connection-form
use saga_core::{StepError, saga_step};

struct Connection;

#[saga_step]
async fn reserve_stock(_tx: &Connection, _order: u32) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
