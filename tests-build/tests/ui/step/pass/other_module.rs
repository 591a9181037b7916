// pass: one import brings the function and the name of the step, whatever the visibility
use saga_core::Saga;
use saga_core::memory::MemoryStore;

use self::stock::{check_stock, inner::count_stock};
use crate::ready;

mod stock {
    use saga_core::{StepError, saga_step};

    #[saga_step(no_compensation)]
    pub(super) async fn check_stock(order: u64) -> Result<u64, StepError> {
        Ok(order + 1)
    }

    pub(super) mod inner {
        #[saga_core::saga_step]
        pub(in super::super) async fn count_stock(order: u64) -> Result<u64, saga_core::StepError> {
            Ok(order + 2)
        }
    }
}

#[test]
fn it_is_used_from_another_module() {
    let saga: Saga<MemoryStore, u64> =
        Saga::named("stock").input::<u64>().step::<check_stock>().step::<count_stock>().build().unwrap();
    assert_eq!(saga.name(), "stock");
    assert_eq!(ready(check_stock(1)).unwrap() + ready(count_stock(1)).unwrap(), 5);
}
