// rule: too-many-reads
use saga_core::{State, StepError, saga_step};

#[saga_step]
#[rustfmt::skip]
async fn charge_card(
    _order: String, _a: State<u32>, _b: State<u32>, _c: State<u32>, _d: State<u32>, _e: State<u32>, _f: State<u32>, _g: State<u32>, _h: State<u32>, _i: State<u32>, _j: State<u32>, _k: State<u32>, _l: State<u32>, _m: State<u32>,
) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
