// pass: a step is done for each item of a list, in a branch too, and later steps take what the items gave
use saga_core::{Output, Outputs, Saga, StepError, memory::MemoryStore, saga_step};

#[saga_step(no_compensation)]
async fn plan(order: u64) -> Result<Vec<u64>, StepError> {
    Ok(vec![order])
}

#[saga_step(no_compensation)]
async fn pack(parcel: u64) -> Result<String, StepError> {
    Ok(parcel.to_string())
}

#[saga_step(no_compensation)]
async fn label(name: String) -> Result<usize, StepError> {
    Ok(name.len())
}

#[saga_step]
async fn ship(
    _order: u64,
    Outputs(parcels): Outputs<pack>,
    Outputs(labels): Outputs<label>,
) -> Result<(), StepError> {
    drop::<(Vec<String>, Vec<usize>)>((parcels, labels));
    Ok(())
}

fn order() -> Saga<MemoryStore, u64> {
    Saga::named("ship")
        .input::<u64>()
        .step::<plan>()
        .for_each::<pack, _>(8, |_: &u64, Output(parcels): Output<plan>| parcels)
        .parallel(|group| group.branch(|branch| branch.for_each::<label, _>(2, |_: &u64, Outputs(names): Outputs<pack>| names)))
        .step::<ship>()
        .build()
        .expect("ship is a valid saga")
}

#[test]
fn lists_need_no_types() {
    assert_eq!(order().name(), "ship");
}
