// pass: branches run side by side, hold groups themselves, and what stands behind them takes the outputs of all
use saga_core::memory::MemoryStore;
use saga_core::{Output, Saga, StepError, saga_step};

#[saga_step(no_compensation)]
async fn charge(cents: u64) -> Result<u64, StepError> {
    Ok(cents)
}

#[saga_step(no_compensation)]
async fn pack(cents: u64) -> Result<String, StepError> {
    Ok(cents.to_string())
}

#[saga_step(no_compensation)]
async fn label(parcel: String) -> Result<String, StepError> {
    Ok(parcel)
}

#[saga_step(no_compensation)]
async fn weigh(parcel: String) -> Result<usize, StepError> {
    Ok(parcel.len())
}

#[saga_step]
async fn send(_cents: u64, Output(paid): Output<charge>, Output(label): Output<label>) -> Result<(), StepError> {
    drop((paid, label));
    Ok(())
}

#[expect(clippy::redundant_closure_for_method_calls, reason = "a closure reads as the other branches do")]
fn order() -> Saga<MemoryStore, u64> {
    Saga::named("order")
        .input::<u64>()
        .parallel(|group| {
            group.branch(|branch| branch.step::<charge>()).branch(|branch| {
                branch.step::<pack>().parallel(|group| {
                    group
                        .branch(|branch| branch.step_from::<label, _>(|_: &u64, Output(parcel): Output<pack>| parcel))
                        .branch(|branch| branch.step_from::<weigh, _>(|_: &u64, Output(parcel): Output<pack>| parcel))
                })
            })
        })
        .step::<send>()
        .build()
        .expect("order is a valid saga")
}

#[test]
fn branches_need_no_types() {
    assert_eq!(order().name(), "order");
}
