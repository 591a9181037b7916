// pass: the types decide whether a compensation takes the output or an option of it
use saga_core::memory::MemoryStore;
use saga_core::step::{Args, Handler, StepOutputs, States, Step, Undo};
use saga_core::{StepContext, StepError, StepErrorKind, saga_compensation, saga_step};

use crate::ready;

#[saga_step(compensate = undo_given)]
async fn given(_order: u64) -> Result<Option<u32>, StepError> {
    Ok(None)
}

/// It takes the output of the step itself, which is an `Option`.
#[saga_compensation]
async fn undo_given(_order: u64, output: Option<u32>) -> Result<(), StepError> {
    Err(StepError::reject(format!("{output:?}")))
}

#[saga_step(compensate = undo_unknown)]
async fn unknown(_order: u64) -> Result<Option<u32>, StepError> {
    Ok(None)
}

/// It takes an `Option` of the step's output.
#[expect(clippy::option_option, reason = "the outer one says whether the output is known")]
#[saga_compensation]
async fn undo_unknown(_order: u64, output: Option<Option<u32>>) -> Result<(), StepError> {
    Err(StepError::reject(format!("{output:?}")))
}

#[saga_step(compensate = undo_nothing)]
async fn nothing(_order: u64) -> Result<(), StepError> {
    Ok(())
}

#[saga_compensation]
async fn undo_nothing(_order: u64, output: Option<()>) -> Result<(), StepError> {
    Err(StepError::reject(format!("{output:?}")))
}

/// What the compensation was given, which it rejects with.
fn given_to_undo<T: Handler<MemoryStore, Input = u64>>(output: Option<T::Output>) -> (StepErrorKind, String) {
    let Undo::External(undo) = T::undo() else { panic!("it takes no connection") };
    let (ctx, states, outputs) = (StepContext::for_test("order-7:step:undo"), States::new(), StepOutputs::new());
    let args = Args { ctx: &ctx, states: &states, outputs: &outputs };
    let error = ready(undo(args, 1, output)).expect_err("each compensation rejects");
    (error.kind(), error.to_string())
}

#[test]
fn an_option_that_the_step_returned_is_not_an_unknown_outcome() {
    assert_eq!(given::UNDO.map(|undo| undo.when_unknown()), Some(false));
    assert_eq!(given_to_undo::<given>(Some(None)), (StepErrorKind::Rejected, "None".to_owned()));
    assert_eq!(given_to_undo::<given>(Some(Some(3))), (StepErrorKind::Rejected, "Some(3)".to_owned()));
    let (kind, text) = given_to_undo::<given>(None);
    assert_eq!(kind, StepErrorKind::Unreadable);
    assert!(text.contains("its outcome is unknown"), "{text}");
}

#[test]
fn an_unknown_outcome_is_the_outer_none() {
    assert_eq!(unknown::UNDO.map(|undo| undo.when_unknown()), Some(true));
    assert_eq!(given_to_undo::<unknown>(None), (StepErrorKind::Rejected, "None".to_owned()));
    assert_eq!(given_to_undo::<unknown>(Some(None)), (StepErrorKind::Rejected, "Some(None)".to_owned()));
}

#[test]
fn a_step_that_returns_nothing_is_known_to_have_run() {
    assert_eq!(nothing::UNDO.map(|undo| undo.when_unknown()), Some(true));
    let stored = nothing::OUTPUT.encode(&()).unwrap();
    let output = nothing::OUTPUT.decode(&stored).ok();
    assert_eq!(given_to_undo::<nothing>(output), (StepErrorKind::Rejected, "Some(())".to_owned()));
    assert_eq!(given_to_undo::<nothing>(None), (StepErrorKind::Rejected, "None".to_owned()));
}
