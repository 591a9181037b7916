//! What a definition with choices says about itself.

use saga_core::memory::MemoryStore;
use saga_core::saga::{Branch, SagaBuilder};
use saga_core::{Output, StepContext, StepError, saga_step};

use super::shipping::*;

#[test]
fn what_does_not_hold_together_is_refused() {
    #[saga_step(no_compensation)]
    async fn print(_ctx: &StepContext, _order: u32, Output(_packed): Output<pack>) -> Result<(), StepError> {
        Ok(())
    }
    #[saga_step]
    async fn tell(_ctx: &StepContext, _order: u32) -> Result<(), StepError> {
        Ok(())
    }
    let check = |builder: SagaBuilder<MemoryStore, u32>, expected: &str| {
        let said = builder.build().unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    };
    let packed = || new().when("is-large", |_: &u32| true, Branch::step::<pack>);
    check(packed().step::<print>(), "may not run; take it as `Option<Output<..>>`");
    check(
        new().step::<pack>().step::<call_courier>().step::<bill>(),
        "but that step always runs; leave `Option<..>` out",
    );
    check(
        new().choose("c", |choice| {
            choice.when("a", |_: &u32| true, Branch::step::<pack>).otherwise(Branch::step::<print>)
        }),
        "another arm of the same choice",
    );
    check(packed().pivot(), "stands behind a choice");
    check(new().when("c", |_: &u32| true, |branch| branch.step::<pack>().pivot()), "inside an arm of a choice");
    check(new().step::<reserve>().when("c", |_: &u32| true, Branch::step::<tell>), "`tell` may have to be undone");
    check(new().choose("c", |choice| choice), "the choice `c`: it has no arm");
    check(new().choose("Big", |choice| choice.otherwise(|branch| branch)), "the choice `Big`: its name");
    check(new().when("pack", |_: &u32| true, Branch::step::<pack>), "two of its steps are named `pack`");
    check(
        new().choose("c", |choice| choice.when("a", |_: &u32| true, |b| b).when("a", |_: &u32| true, |b| b)),
        "two of its arms are named `a`",
    );
    check(
        new().choose("c", |choice| choice.otherwise(|b| b).when("a", |_: &u32| true, |b| b)),
        "stands behind `otherwise`, so it never runs",
    );
    let late = |branch: SagaBuilder<MemoryStore, u32>| branch.when("c", |_: &u32, _: Output<pack>| true, |b| b);
    check(late(new()).step::<pack>(), "`c` needs the output of `pack`, which does not run before it");
    assert!(packed().step::<tell>().build().is_ok(), "the last step of a saga is its pivot, also behind a choice");
    assert!(new().when("c", |_: &u32| true, |b| b.step::<pack>().step::<print>()).step::<tell>().build().is_ok());
}

#[test]
fn the_chart_shows_the_arms() {
    let chart = shipping().to_mermaid();
    for line in [
        "s1{\"shipping\"}",
        "s0 --> s1",
        "s1 -- parcel --> s2",
        "s1 -- express --> s4",
        "s1 -- otherwise --> s5",
        "s3 --> s5",
    ] {
        assert!(chart.contains(line), "{line} is missing in {chart}");
    }
    let chart = new().when("is-large", |_: &u32| true, Branch::step::<pack>).build().unwrap().to_mermaid();
    assert!(chart.contains("s0 -- otherwise --> completed") && chart.contains("s1 --> completed"), "{chart}");
}
