// pass: a step returns the error type of its application, also through an alias
use saga_core::memory::MemoryStore;
use saga_core::step::{Args, Handler, StepOutputs, Run, States};
use saga_core::{StepResultExt, IntoStepError, StepContext, StepError, StepErrorKind, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

use crate::ready;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum ShopError {
    OutOfStock { left: u64 },
    Busy,
}

impl std::fmt::Display for ShopError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutOfStock { left } => write!(f, "only {left} left"),
            Self::Busy => f.write_str("the warehouse is busy"),
        }
    }
}

impl std::error::Error for ShopError {}

impl IntoStepError for ShopError {
    fn into_step_error(self) -> StepError {
        match self {
            Self::OutOfStock { .. } => StepError::reject_with(self),
            Self::Busy => StepError::retry(self),
        }
    }
}

type ShopResult<T> = std::result::Result<T, ShopError>;
type Result<T, E = StepError> = std::result::Result<T, E>;

#[saga_step(compensate = release)]
async fn reserve(order: u64) -> ShopResult<u64> {
    match order {
        0 => Err(ShopError::Busy),
        1..=3 => Ok(order),
        _ => Err(ShopError::OutOfStock { left: 3 }),
    }
}

#[saga_compensation]
async fn release(_order: u64, _reserved: u64) -> ShopResult<()> {
    Ok(())
}

#[saga_step]
async fn parse(text: String) -> Result<u64> {
    let boxed: std::result::Result<u64, Box<dyn std::error::Error + Send + Sync>> = text.parse().map_err(Into::into);
    let number = if text.starts_with('-') { boxed.or_reject()? } else { boxed.or_retry()? };
    Ok(number)
}

fn error_of<T: Handler<MemoryStore, Output = u64>>(input: T::Input) -> StepError {
    let Run::External(run) = T::handler() else { panic!("it takes no connection") };
    let (ctx, states, outputs) = (StepContext::for_test("order-7:step"), States::new(), StepOutputs::new());
    let args = Args { ctx: &ctx, states: &states, outputs: &outputs };
    ready(run(args, input)).expect_err("the input is one that fails")
}

#[test]
fn each_case_is_what_it_says() {
    assert_eq!(ready(reserve(2)).unwrap(), 2);
    ready(release(2, 2)).unwrap();
    assert_eq!(error_of::<reserve>(0).kind(), StepErrorKind::Transient);
    let error = error_of::<reserve>(9);
    let rejection = error.rejection().unwrap();
    assert_eq!(rejection.message(), "only 3 left");
    assert_eq!(rejection.details::<ShopError>(), Some(ShopError::OutOfStock { left: 3 }));
    assert_eq!(error_of::<parse>("-1".to_owned()).kind(), StepErrorKind::Rejected);
    assert_eq!(error_of::<parse>("x".to_owned()).kind(), StepErrorKind::Transient);
}
