// rule: not-a-function
use saga_core::saga_step;

#[saga_step]
struct Order;

fn main() {}
