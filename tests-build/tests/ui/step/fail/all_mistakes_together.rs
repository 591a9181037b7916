// rule: lifetime, read-by-reference, input-by-reference, not-a-result, name-reserved
use saga_core::{State, saga_step};

#[saga_step(name = "undo")]
async fn charge_card<'a>(_order: &'a u64, _gateway: &State<u32>) -> Option<u64> {
    None
}

fn main() {}
