// rule: lifetime
use saga_core::{StepError, saga_step};

struct Conn;

#[saga_step]
async fn charge_card(_tx: &'static mut Conn, _order: String) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
