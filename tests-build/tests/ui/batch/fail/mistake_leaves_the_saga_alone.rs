// rule: batch-context, batch-return
use saga_core::{Batch, Saga, StepContext, StepError, memory::MemoryConn, memory::MemoryStore, saga_step};

#[saga_step(no_compensation)]
async fn reserve_stock(_tx: &mut MemoryConn, _ctx: &StepContext, _orders: Batch<String>) -> Result<u64, StepError> {
    Ok(7)
}

fn main() {
    let _saga: Result<Saga<MemoryStore, String>, _> =
        Saga::named("create-order").input::<String>().step::<reserve_stock>().build();
}
