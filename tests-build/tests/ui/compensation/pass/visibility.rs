// pass: a step is more visible than the function that undoes it
use saga_core::Saga;
use saga_core::memory::MemoryStore;

use self::stock::reserve;

mod stock {
    use saga_core::memory::MemoryConn;
    use saga_core::{StepError, saga_compensation, saga_step};

    #[saga_step(compensate = release)]
    pub(crate) async fn reserve(_order: u64) -> Result<u64, StepError> {
        Ok(1)
    }

    #[saga_compensation]
    async fn release(_tx: &mut MemoryConn, _order: u64) -> Result<(), StepError> {
        Ok(())
    }
}

#[test]
fn the_saga_is_built() {
    let saga: Saga<MemoryStore, u64> = Saga::named("stock").input::<u64>().step::<reserve>().build().unwrap();
    assert_eq!(saga.name(), "stock");
}
