// rule: migration-output
use saga_core::{Migration, Saga, StepError, memory::MemoryStore, saga_step};

#[saga_step(no_compensation)]
async fn take_stock(_order: String) -> Result<u32, StepError> {
    Ok(1)
}
#[saga_step(no_compensation)]
async fn reserve_stock(_order: String) -> Result<String, StepError> {
    Ok(String::new())
}

fn migration(v1: &Saga<MemoryStore, String>, v2: &Saga<MemoryStore, String>) {
    let _ = Migration::between(v1, v2).step::<take_stock, reserve_stock>().build();
}

fn main() {}
