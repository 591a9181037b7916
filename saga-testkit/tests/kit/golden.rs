//! Golden files: those of this folder were stored by earlier states of the engine, and are finished by this one; and what
//! breaks one is found and named. `UPDATE_GOLDEN=1` makes the files anew.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::{Output, Outputs, Saga, Signal, Signaled, StepContext, StepError, Wait, saga_compensation, saga_step};
use saga_testkit::golden::{Golden, GoldenError};
use serde::{Deserialize, Serialize};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[saga_step(compensate = put_back)]
async fn take(_conn: &mut MemoryConn, amount: i64) -> Result<i64, StepError> {
    Ok(amount)
}

#[saga_compensation]
async fn put_back(_conn: &mut MemoryConn, _amount: i64, _taken: i64) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = refund)]
async fn charge(_ctx: &StepContext, amount: i64) -> Result<String, StepError> {
    Ok(format!("receipt {amount}"))
}

#[saga_compensation]
async fn refund(_ctx: &StepContext, _amount: i64, _receipt: Option<String>) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = unpack)]
async fn pack(_conn: &mut MemoryConn, number: i64) -> Result<u8, StepError> {
    u8::try_from(number).map_err(StepError::reject)
}

#[saga_compensation]
async fn unpack(_conn: &mut MemoryConn, _number: i64, _weight: u8) -> Result<(), StepError> {
    Ok(())
}

#[saga_step]
async fn confirm(_conn: &mut MemoryConn, _amount: i64) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation)]
async fn label(receipt: String, Outputs(_weights): Outputs<pack>) -> Result<String, StepError> {
    Ok(receipt)
}

type Buy = Saga<MemoryStore, i64>;

fn row() -> Buy {
    Saga::named("row").input().step::<take>().step::<charge>().pivot().step::<confirm>().build().unwrap()
}

fn group() -> Buy {
    Saga::named("group")
        .input()
        .parallel(|group| group.branch(Branch::step::<take>).branch(Branch::step::<charge>))
        .step::<confirm>()
        .build()
        .unwrap()
}

fn list() -> Buy {
    Saga::named("list")
        .input()
        .step::<charge>()
        .for_each::<pack, _>(2, |amount: &i64| (0..*amount).collect())
        .step_from::<label, _>(|_: &i64, Output(receipt): Output<charge>| receipt)
        .step::<confirm>()
        .build()
        .unwrap()
}

/// What another service does for each item of a list.
mod depot {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "depot", compensated)]
    pub async fn send(number: i64) -> Result<String, StepError>;
}

fn list_elsewhere() -> Buy {
    Saga::named("list-elsewhere")
        .input()
        .for_each::<depot::send, _>(2, |amount: &i64| (0..*amount).collect())
        .step::<take>()
        .step::<confirm>()
        .build()
        .unwrap()
}

#[derive(Serialize, Deserialize)]
struct Word(String);

impl Signal for Word {
    const NAME: &'static str = "word";
}

#[saga_step(no_compensation)]
async fn pass_on(_amount: i64, Signaled(_word): Signaled<Word>) -> Result<(), StepError> {
    Ok(())
}

fn waits() -> Buy {
    Saga::named("waits")
        .input()
        .deadline(Duration::from_hours(1))
        .step::<take>()
        .parallel(|group| {
            group.branch(|branch| branch.sleep("rest", Duration::from_hours(24)).step::<charge>()).branch(|branch| {
                branch.wait_for::<Word>(Wait::within(Duration::from_hours(48)).or_reject()).step::<pass_on>()
            })
        })
        .sleep_until("the-end", |_: &i64| SystemTime::UNIX_EPOCH + Duration::from_hours(1))
        .step::<confirm>()
        .build()
        .unwrap()
}

fn golden(saga: &Buy) -> Golden<MemoryStore, i64> {
    let golden = Golden::of(saga, &3).returns::<take>(&3).returns::<charge>(&"receipt 3".to_owned());
    let golden = golden.returns::<Signaled<Word>>(&Word("go".to_owned()));
    let golden = golden.returns::<depot::send>(&"sent".to_owned());
    golden.returns::<pack>(&4).returns::<label>(&"receipt 3".to_owned())
}

#[tokio::test]
async fn stored_sagas_of_steps_in_a_row_can_be_finished() {
    golden(&row()).check(file("row-v1.json")).await.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn stored_sagas_with_branches_can_be_finished() {
    golden(&group()).check(file("group-v1.json")).await.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn stored_sagas_over_a_list_can_be_finished() {
    golden(&list()).check(file("list-v1.json")).await.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn stored_sagas_over_a_list_of_another_service_can_be_finished() {
    let golden = golden(&list_elsewhere());
    golden.check(file("list-elsewhere-v1.json")).await.unwrap_or_else(|error| panic!("{error}"));
}

/// No time passes, and the signal is there.
#[tokio::test]
async fn stored_sagas_that_wait_can_be_finished() {
    golden(&waits()).check(file("waits-v1.json")).await.unwrap_or_else(|error| panic!("{error}"));
}

#[saga_step(name = "charge", compensate = refund_number)]
async fn charge_number(_ctx: &StepContext, amount: i64) -> Result<i64, StepError> {
    Ok(amount)
}

#[saga_compensation]
async fn refund_number(_ctx: &StepContext, _amount: i64, _receipt: Option<i64>) -> Result<(), StepError> {
    Ok(())
}

async fn refusal(saga: &Buy, name: &str) -> GoldenError {
    golden(saga).verify(file(name)).await.unwrap_err()
}

#[tokio::test]
async fn an_output_that_cannot_be_read_any_more_is_found() {
    let changed = Saga::named("row").input().step::<take>().step::<charge_number>().pivot().step::<confirm>();
    let GoldenError::Damaged(damages) = refusal(&changed.build().unwrap(), "row-v1.json").await else {
        panic!("it is damaged");
    };
    let said = damages.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(said.contains("a stored saga in front of `charge`: it ended \"stuck at `charge`"), "{said}");
    assert!(said.contains("`Migration::step_with`"), "{said}");
}

#[tokio::test]
async fn a_mapping_that_gives_something_else_is_found() {
    let changed = Saga::named("list")
        .input()
        .step::<charge>()
        .for_each::<pack, _>(2, |amount: &i64| (0..*amount).collect())
        .step_from::<label, _>(|_: &i64, Output(receipt): Output<charge>| format!("{receipt}!"))
        .step::<confirm>();
    let said = refusal(&changed.build().unwrap(), "list-v1.json").await.to_string();
    assert!(said.contains("`label` is given another input than before: its mapping has changed"), "{said}");
}

#[tokio::test]
async fn steps_that_changed_are_named() {
    let changed = Saga::named("row").input().step::<charge>().step::<take>().step::<confirm>().build().unwrap();
    let said = refusal(&changed, "row-v1.json").await;
    assert!(matches!(&said, GoldenError::Changed { version: 1, .. }), "{said}");
    let again = golden(&changed).record(file("row-v1.json")).await;
    assert!(
        matches!(again, Err(GoldenError::Changed { .. })),
        "a version that changed does not take the file: {again:?}"
    );
    let other = refusal(&group(), "row-v1.json").await.to_string();
    assert!(other.contains("it is of row version 1, and not of group version 1"), "{other}");
}

#[tokio::test]
async fn what_is_missing_is_told() {
    let said = refusal(&row(), "none.json").await.to_string();
    assert!(said.contains("run the test once with UPDATE_GOLDEN=1"), "{said}");
    let untold = Golden::of(&row(), &3).returns::<take>(&3).record(file("none.json")).await.unwrap_err().to_string();
    assert!(untold.contains("say what `charge` returns, with `.returns::<charge>(&..)`"), "{untold}");
}

/// The file of a version that still runs is not replaced by one with other steps because a merge left its marks in it.
#[tokio::test]
async fn a_file_that_cannot_be_read_is_not_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("row-v1.json");
    let merged = std::fs::read_to_string(file("row-v1.json")).unwrap().replacen('{', "<<<<<<< HEAD\n{", 1);
    std::fs::write(&path, &merged).unwrap();
    let refused = golden(&row()).record(&path).await;
    assert!(matches!(refused, Err(GoldenError::File { .. })), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), merged);
}
