// pass: the types decide whether a compensation takes the output or an option of it
use saga_core::step::{Given, Step};
use saga_core::{StepError, saga_compensation, saga_step};

#[saga_step(compensate = undo_given)]
async fn given(_order: u64) -> Result<Option<u32>, StepError> {
    Ok(None)
}

/// It takes the output of the step itself, which is an `Option`.
#[saga_compensation]
async fn undo_given(_order: u64, _output: Option<u32>) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = undo_unknown)]
async fn unknown(_order: u64) -> Result<Option<u32>, StepError> {
    Ok(None)
}

/// It takes an `Option` of the step's output.
#[expect(clippy::option_option, reason = "the outer one says whether the output is known")]
#[saga_compensation]
async fn undo_unknown(_order: u64, _output: Option<Option<u32>>) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = undo_nothing)]
async fn nothing(_order: u64) -> Result<(), StepError> {
    Ok(())
}

#[saga_compensation]
async fn undo_nothing(_order: u64, _output: Option<()>) -> Result<(), StepError> {
    Ok(())
}

#[test]
fn an_option_that_the_step_returned_is_not_an_unknown_outcome() {
    let undo = given::UNDO.unwrap();
    assert!(!undo.when_unknown());
    assert!(matches!(undo.arguments(1, Some(None)), Some((1, Given(None)))));
    assert!(undo.arguments(1, None).is_none());
}

#[test]
fn an_unknown_outcome_is_the_outer_none() {
    let undo = unknown::UNDO.unwrap();
    assert!(undo.when_unknown());
    assert!(matches!(undo.arguments(1, None), Some((1, Given(None)))));
    assert!(matches!(undo.arguments(1, Some(None)), Some((1, Given(Some(None))))));
}

#[test]
fn a_step_that_returns_nothing_is_known_to_have_run() {
    let undo = nothing::UNDO.unwrap();
    let stored = nothing::OUTPUT.encode(&()).unwrap();
    let output = nothing::OUTPUT.decode(&stored).ok();
    assert!(matches!(undo.arguments(1, output), Some((1, Given(Some(()))))));
    assert!(matches!(undo.arguments(1, None), Some((1, Given(None)))));
}
