// pass: a step goes on as another one in a later version, which returns the same, or what is made of it
use saga_core::{Migration, Saga, StepError, memory::MemoryStore, saga_step};

#[saga_step(no_compensation)]
async fn take_stock(_order: String) -> Result<u32, StepError> {
    Ok(1)
}

#[saga_step(no_compensation)]
async fn take_pieces(_order: String) -> Result<u32, StepError> {
    Ok(1)
}

#[saga_step(no_compensation)]
async fn reserve_stock(_order: String) -> Result<String, StepError> {
    Ok(String::new())
}

type Order = Saga<MemoryStore, String>;

#[test]
fn a_step_becomes_another() {
    let order = |version| Saga::named("order").input::<String>().version(version);
    let first: Order = order(1).step::<take_stock>().build().expect("a valid saga");
    let second: Order = order(2).step::<take_pieces>().build().expect("a valid saga");
    let third: Order = order(3).step::<reserve_stock>().build().expect("a valid saga");
    let renamed = Migration::between(&first, &second).step::<take_stock, take_pieces>().build();
    assert!(renamed.is_ok(), "{renamed:?}");
    let changed = Migration::between(&first, &third).step_with::<take_stock, reserve_stock>(|pieces| pieces.to_string());
    assert!(changed.build().is_ok());
}
