// rule: two-connections
use saga_core::{StepError, saga_step};

struct Conn;

#[saga_step]
async fn move_stock(_from: &mut Conn, _to: &mut Conn, _order: String) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
