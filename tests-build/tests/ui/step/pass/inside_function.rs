// pass: a step is declared inside a function, and a variable has its name
use saga_core::step::Step;
use saga_core::{StepError, saga_step};

use crate::ready;

#[test]
fn it_is_declared_where_it_is_used() {
    #[saga_step]
    async fn charge_card(order: u64) -> Result<u64, StepError> {
        Ok(order * 2)
    }
    let charged = ready(charge_card(4)).unwrap();
    let charge_card = charged;
    assert_eq!(charge_card, 8);
    assert_eq!(<charge_card as Step>::NAME, "charge-card");
}
