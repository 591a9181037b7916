// pass: of the arms of a choice one runs, in a branch and in an arm too, and later steps take what it gave as an `Option`
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
async fn call_courier(order: u64, Outputs(parcels): Outputs<pack>) -> Result<u64, StepError> {
    drop::<Vec<String>>(parcels);
    Ok(order)
}

#[saga_step]
async fn ship(
    _order: u64,
    parcels: Option<Outputs<pack>>,
    ride: Option<Output<call_courier>>,
) -> Result<(), StepError> {
    drop::<(Option<Vec<String>>, Option<u64>)>((
        parcels.map(|Outputs(parcels)| parcels),
        ride.map(|Output(ride)| ride),
    ));
    Ok(())
}

fn order() -> Saga<MemoryStore, u64> {
    Saga::named("ship")
        .input::<u64>()
        .step::<plan>()
        .choose("packing", |choice| {
            choice
                .when(
                    "in-parcels",
                    |_: &u64, Output(parcels): Output<plan>| parcels.len() > 1,
                    |branch| {
                        branch
                            .for_each::<pack, _>(8, |_: &u64, Output(parcels): Output<plan>| parcels)
                            .when("is-urgent", |order: &u64| *order > 9, saga_core::saga::StepBuilder::step::<call_courier>)
                    },
                )
                .when("nothing", |order: &u64| *order == 0, |branch| branch)
        })
        .step::<ship>()
        .build()
        .expect("ship is a valid saga")
}

#[test]
fn choices_need_no_types() {
    assert_eq!(order().name(), "ship");
}
