// pass: a value and a state may refer to what is never dropped
use std::borrow::Cow;
use std::sync::Arc;

use saga_core::memory::MemoryStore;
use saga_core::step::{Args, Handler, Run, States, StepOutputs};
use saga_core::{Output, State, StepContext, StepError, saga_compensation, saga_step};

use crate::ready;

#[saga_step(compensate = forget)]
async fn greet(name: Cow<'static, str>, State(greeting): State<&'static str>) -> Result<Cow<'static, str>, StepError> {
    Ok(format!("{greeting}, {name}").into())
}

#[saga_compensation]
async fn forget(
    _name: Cow<'static, str>,
    _greeted: Cow<'static, str>,
    _greeting: State<&'static str>,
) -> Result<(), StepError> {
    Ok(())
}

#[saga_step]
async fn print(_name: Cow<'static, str>, Output(greeted): Output<greet>) -> Result<usize, StepError> {
    Ok(greeted.len())
}

#[test]
fn they_are_given_like_others() {
    let Run::External(run) = <greet as Handler<MemoryStore>>::handler() else { panic!("it takes no connection") };
    let mut states = States::new();
    states.insert("Hello");
    let ctx = StepContext::for_test("visit-7:greet");
    let args = Args { ctx: &ctx, states: &states, outputs: &StepOutputs::default() };
    assert_eq!(ready(run(args, Cow::Borrowed("Ada"))).unwrap(), "Hello, Ada");

    let Run::External(run) = <print as Handler<MemoryStore>>::handler() else { panic!("it takes no connection") };
    let outputs = StepOutputs::from_iter([("greet", Arc::from(&b"\"Hello, Ada\""[..]))]);
    let args = Args { ctx: &ctx, states: &states, outputs: &outputs };
    assert_eq!(ready(run(args, Cow::Borrowed("Ada"))).unwrap(), 10);
}
