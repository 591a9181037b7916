// pass: what does not exist in this build has no step either
use saga_core::{StepError, saga_step};

use crate::ready;

#[saga_step]
#[cfg(any())]
async fn charge_card(order: Nowhere) -> Result<u64, StepError> {
    Ok(order)
}

#[saga_step]
#[cfg(not(any()))]
#[deprecated = "charge by invoice"]
async fn charge_card(order: u64) -> Result<u64, StepError> {
    Ok(order)
}

#[test]
#[expect(deprecated, reason = "the attribute of the function is kept")]
fn the_other_one_is_there() {
    assert_eq!(ready(charge_card(4)).unwrap(), 4);
}
