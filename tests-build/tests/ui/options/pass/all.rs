// pass: every option is what it says, and the rest is the default
use std::time::Duration;

use saga_core::memory::MemoryConn;
use saga_core::step::{Compensation, Step};
use saga_core::step::StepOptions;
use saga_core::{OnExhausted, RetryPolicy, StepError, saga_compensation, saga_step};

#[saga_step]
async fn plain(_order: u64) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(
    name = "charge-card-2",
    compensate = refund,
    retry(attempts = 8, base = "250ms", cap = "2m"),
    timeout = "1h",
    give_up_after = "48h",
    on_exhausted = "compensate",
    group = false,
    max_concurrent = 8,
)]
async fn charge(_tx: &mut MemoryConn, _order: u64) -> Result<(), StepError> {
    Ok(())
}

#[saga_compensation(retry(cap = "1s"), timeout = "5s", group = true, max_concurrent = 2)]
async fn refund(_tx: &mut MemoryConn, _order: u64) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation, retry(), name = "a-name-of-40-bytes-is-still-a-good-one-0")]
async fn longest(_order: u64) -> Result<(), StepError> {
    Ok(())
}

mod vendored {
    pub(super) use saga_core as core;
}

#[saga_step(crate = vendored::core)]
async fn elsewhere(_order: u64) -> Result<(), StepError> {
    Ok(())
}

#[test]
fn the_options_are_kept() {
    assert_eq!((plain::NAME, plain::OPTIONS), ("plain", StepOptions::DEFAULT));
    assert_eq!(charge::NAME, "charge-card-2");
    let (base, cap) = (Duration::from_millis(250), Duration::from_mins(2));
    let give_up_after = Some(Duration::from_hours(48));
    let retry = RetryPolicy { attempts: Some(8), base, cap, give_up_after, on_exhausted: OnExhausted::Compensate };
    assert_eq!(charge::OPTIONS.retry_policy(&RetryPolicy::DEFAULT), retry);
    assert_eq!(charge::OPTIONS.timeout, Duration::from_hours(1));
    assert_eq!((charge::OPTIONS.max_concurrent, plain::OPTIONS.max_concurrent), (Some(8), None));
    assert_eq!([charge::OPTIONS.grouped, charge::OPTIONS.needs_no_compensation], [false, false]);
    let retry = RetryPolicy { cap: Duration::from_secs(1), ..RetryPolicy::DEFAULT };
    assert_eq!(refund::OPTIONS.retry_policy(&RetryPolicy::DEFAULT), retry);
    assert_eq!(refund::OPTIONS.timeout, Duration::from_secs(5));
    assert_eq!(refund::OPTIONS.max_concurrent, Some(2));
    assert_eq!(longest::NAME.len(), 40);
    assert_eq!([longest::OPTIONS.grouped, longest::OPTIONS.needs_no_compensation], [true, true]);
    let default = RetryPolicy { attempts: Some(3), ..RetryPolicy::DEFAULT };
    assert_eq!(longest::OPTIONS.retry_policy(&default), default);
    assert_eq!(elsewhere::NAME, "elsewhere");
}
