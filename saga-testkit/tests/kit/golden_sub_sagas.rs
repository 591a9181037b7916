//! Golden files of a saga that has a saga as a step: both are finished, and what breaks either is found and named.
//! `UPDATE_GOLDEN=1` makes the file anew, but for that of before, which holds no sub-sagas.

use std::path::{Path, PathBuf};
use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Output, Saga, Signal, Signaled, StepContext, StepError, SubSaga, Wait, saga_compensation, saga_step};
use saga_testkit::golden::{Golden, GoldenError};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[saga_step(compensate = unpack)]
async fn pack(_conn: &mut MemoryConn, pieces: i64) -> Result<u8, StepError> {
    u8::try_from(pieces).map_err(StepError::reject)
}

#[saga_compensation]
async fn unpack(_conn: &mut MemoryConn, _pieces: i64, _weight: u8) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = unlabel)]
async fn label(_ctx: &StepContext, pieces: i64) -> Result<String, StepError> {
    Ok(format!("truck {pieces}"))
}

#[saga_compensation]
async fn unlabel(_ctx: &StepContext, _pieces: i64, _label: Option<String>) -> Result<(), StepError> {
    Ok(())
}

/// What is labelled is in the saga and in its sub-saga, and gives something else.
#[saga_step(name = "label", compensate = unnumber)]
async fn number(_conn: &mut MemoryConn, pieces: i64) -> Result<i64, StepError> {
    Ok(pieces)
}

#[saga_compensation]
async fn unnumber(_conn: &mut MemoryConn, _pieces: i64, _number: i64) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = refund)]
async fn charge(_ctx: &StepContext, _pieces: i64, Output(_truck): Output<Shipping>) -> Result<u8, StepError> {
    Ok(1)
}

#[saga_compensation]
async fn refund(_ctx: &StepContext, _pieces: i64) -> Result<(), StepError> {
    Ok(())
}

struct Shipping;

impl SubSaga for Shipping {
    const NAME: &'static str = "shipping";
    type Input = i64;
    type Output = String;
}

type Order = Saga<MemoryStore, i64>;
type Ship = Saga<MemoryStore, i64, String>;

fn ship() -> Ship {
    let ship = Saga::named("ship").input().step::<pack>().sleep("rest", Duration::from_hours(24));
    let ship = ship.step_from::<label, _>(|pieces: &i64, Output(weight): Output<pack>| pieces + i64::from(weight));
    ship.returns::<label>().build().unwrap()
}

fn order_with(ship: &Ship) -> Order {
    let order = Saga::named("order").input().step::<number>();
    order
        .sub_saga_from::<Shipping, _>(ship, |_: &i64, Output(number): Output<number>| number + 1)
        .step::<charge>()
        .build()
        .unwrap()
}

fn golden(order: &Order) -> Golden<MemoryStore, i64> {
    let golden = Golden::of(order, &3).returns::<number>(&3).returns::<pack>(&4).returns::<charge>(&1);
    golden.returns_in::<Shipping, label>(&"truck 7".to_owned())
}

async fn refusal(order: &Order) -> GoldenError {
    golden(order).verify(file("order-v1.json")).await.unwrap_err()
}

fn said(damages: &[saga_testkit::golden::Damage]) -> String {
    damages.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// It completes, is rejected in its sub-saga, and behind it, so that the sub-saga is undone.
#[tokio::test]
async fn a_saga_and_its_sub_saga_can_be_finished() {
    golden(&order_with(&ship())).check(file("order-v1.json")).await.unwrap_or_else(|error| panic!("{error}"));
    let text = std::fs::read_to_string(file("order-v1.json")).unwrap();
    for stands in ["in front of `pack` of `shipping`", "in front of the undo of `label` of `shipping`"] {
        assert!(text.contains(stands), "{stands}");
    }
}

/// A file that was made before sub-sagas were played holds the step as one that is answered.
#[tokio::test]
async fn a_file_without_sub_sagas_can_still_be_read() {
    let order = order_with(&ship());
    golden(&order).verify(file("order-of-before-v1.json")).await.unwrap_or_else(|error| panic!("{error}"));
    let changed = Saga::named("order").input().step::<number>();
    let changed = changed
        .sub_saga_from::<Shipping, _>(&ship(), |_: &i64, Output(number): Output<number>| number + 2)
        .step::<charge>();
    let error =
        golden(&changed.build().unwrap()).verify(file("order-of-before-v1.json")).await.unwrap_err().to_string();
    assert!(error.contains("`shipping` is given another input than before"), "{error}");
}

#[saga_step(name = "pack", compensate = unpack_text)]
async fn pack_text(_conn: &mut MemoryConn, _pieces: i64) -> Result<String, StepError> {
    Ok(String::new())
}

#[saga_compensation]
async fn unpack_text(_conn: &mut MemoryConn, _pieces: i64, _packed: String) -> Result<(), StepError> {
    Ok(())
}

#[tokio::test]
async fn an_output_of_a_sub_saga_that_cannot_be_read_any_more_is_found() {
    let ship = Saga::named("ship").input().step::<pack_text>().sleep("rest", Duration::from_hours(24));
    let ship = ship.step_from::<label, _>(|pieces: &i64, _: Output<pack_text>| *pieces).returns::<label>();
    let ship = ship.build().unwrap();
    let GoldenError::Damaged(damages) = refusal(&order_with(&ship)).await else { panic!("it is damaged") };
    let said = said(&damages);
    assert!(
        said.contains(
            "a stored saga in front of `pack` of `shipping`: it ended \"waiting for `shipping`, which is stuck at"
        ),
        "{said}"
    );
    assert!(
        said.contains("a stored saga in front of the undo of `label` of `shipping`, where `charge` rejects"),
        "{said}"
    );
}

#[tokio::test]
async fn a_mapping_in_front_of_a_sub_saga_or_inside_that_changed_is_found() {
    let order = Saga::named("order").input().step::<number>();
    let order = order
        .sub_saga_from::<Shipping, _>(&ship(), |_: &i64, Output(number): Output<number>| number + 2)
        .step::<charge>();
    let error = refusal(&order.build().unwrap()).await.to_string();
    assert!(error.contains("`shipping` is given another input than before: its mapping has changed"), "{error}");
    let ship = Saga::named("ship").input().step::<pack>().sleep("rest", Duration::from_hours(24));
    let ship = ship.step_from::<label, _>(|pieces: &i64, _: Output<pack>| *pieces).returns::<label>().build().unwrap();
    let error = refusal(&order_with(&ship)).await.to_string();
    assert!(
        error.contains("`label` of `shipping` is given another input than before: its mapping has changed"),
        "{error}"
    );
}

fn ship_with_weighing(version: u32) -> Ship {
    #[saga_step(no_compensation)]
    async fn weigh(_pieces: i64) -> Result<(), StepError> {
        Ok(())
    }
    let ship = Saga::named("ship").input().version(version).step::<pack>().step::<weigh>().step::<label>();
    ship.returns::<label>().build().unwrap()
}

#[tokio::test]
async fn steps_of_a_sub_saga_that_changed_are_named() {
    let error = refusal(&order_with(&ship_with_weighing(1))).await;
    assert!(matches!(&error, GoldenError::Changed { saga, version: 1, .. } if saga == "ship"), "{error}");
    assert!(error.to_string().contains("`weigh` was added behind `pack`"), "{error}");
}

/// The sub-saga that is started now is another version. Those that were begun go on, where theirs is registered as well.
#[tokio::test]
async fn another_version_of_a_sub_saga_needs_the_old_one_beside_it() {
    let order = order_with(&ship_with_weighing(2));
    let error = refusal(&order).await.to_string();
    assert!(error.contains("`shipping` is ship version 1 in it, which is not here"), "{error}");
    let beside = || golden(&order).beside(&ship());
    beside().verify(file("order-v1.json")).await.unwrap_or_else(|error| panic!("{error}"));
    let error = beside().record(file("order-v1.json")).await.unwrap_err().to_string();
    assert!(error.contains("`shipping` is ship version 1 in it, and 2 now; keep it, and make another file"), "{error}");
}

#[tokio::test]
async fn what_a_step_of_a_sub_saga_returns_is_asked_for() {
    let order = order_with(&ship());
    let untold = Golden::of(&order, &3).returns::<number>(&3).returns::<pack>(&4).returns::<charge>(&1);
    let error = untold.record(file("none.json")).await.unwrap_err().to_string();
    assert!(
        error.contains(
            "say what `label` of `shipping` returns, with `.returns::<label>(&..)`, or with `.returns_in::<.., label>(&..)` \
             where another step has that name"
        ),
        "{error}"
    );
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Word(String);

impl Signal for Word {
    const NAME: &'static str = "word";
}

/// A signal is looked for by its name alone.
#[tokio::test]
async fn a_signal_of_one_sub_saga_only_is_refused() {
    let ship = Saga::named("ship").input().step::<pack>();
    let ship = ship.wait_for::<Word>(Wait::within(Duration::from_hours(1)).or_reject()).step::<label>();
    let order = order_with(&ship.returns::<label>().build().unwrap());
    let golden = golden(&order).returns_in::<Shipping, Signaled<Word>>(&Word("go".to_owned()));
    let said = golden.record(file("none.json")).await.unwrap_err().to_string();
    assert!(said.contains("`word` of `shipping` is a signal"), "{said}");
}
