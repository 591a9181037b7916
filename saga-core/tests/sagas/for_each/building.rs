//! What a definition with lists says about itself, and how many items it may have.

use saga_core::memory::MemoryStore;
use saga_core::saga::SagaBuilder;
use saga_core::{Output, Runtime, StepContext, StepError, saga_step};

use super::depot::*;

#[test]
fn what_does_not_hold_together_is_refused() {
    #[saga_step]
    async fn tell(_ctx: &StepContext, _parcel: u32) -> Result<(), StepError> {
        Ok(())
    }
    #[saga_step(no_compensation)]
    async fn ship(_ctx: &StepContext, _parcels: u32, Output(_sent): Output<send>) -> Result<(), StepError> {
        Ok(())
    }
    let each = || new().for_each::<send, _>(2, |parcels: &u32| vec![*parcels]);
    let problems = |builder: SagaBuilder<MemoryStore, u32>| builder.build().unwrap_err().to_string();
    let said = problems(each().step::<ship>());
    assert!(said.contains("take it as `Outputs<..>`"), "{said}");
    let said = problems(new().step::<pack>().step::<bill>());
    assert!(said.contains("take it as `Output<..>`"), "{said}");
    let said = problems(each().pivot());
    assert!(said.contains("put a step between them"), "{said}");
    let said = problems(new().for_each::<send, _>(0, |parcels: &u32| vec![*parcels]));
    assert!(said.contains("1 to 64"), "{said}");
    let said = problems(new().for_each::<tell, _>(2, |parcels: &u32| vec![*parcels]));
    assert!(said.contains("`tell` may have to be undone, but has no compensation"), "{said}");
}

#[test]
fn the_chart_says_for_how_many() {
    let chart = packing(8).to_mermaid();
    assert!(chart.contains("s1[\"pack<br/>for each, 8 at once\"]"), "{chart}");
    assert!(chart.contains("u1[\"undo pack<br/>each, the latest first\"]"), "{chart}");
}

#[tokio::test]
async fn more_items_than_a_state_can_count_are_no_setting() {
    let (saga, depot) = (sending(2), Depot::default());
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).state(depot);
    let refused = runtime.settings(|settings| settings.items_max = 100_001).start().await.unwrap_err().to_string();
    assert!(refused.contains("items_max is 100001; the state of a saga counts at most 100000 items"), "{refused}");
}
