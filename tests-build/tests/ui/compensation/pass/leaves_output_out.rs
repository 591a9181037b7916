// pass: a compensation that leaves the output out runs for unknown outcomes too
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::step::{Handler, Needs, Step, Undo};
use saga_core::{RetryPolicy, Output, StepContext, StepError, saga_compensation, saga_step};

#[saga_step(no_compensation)]
async fn quote(order: u64) -> Result<u64, StepError> {
    Ok(order)
}

#[saga_step(compensate = refund)]
async fn charge(_order: u64) -> Result<String, StepError> {
    Ok("paid".to_owned())
}

#[saga_compensation(retry(attempts = 2), timeout = "1m")]
async fn refund(_ctx: &StepContext, _order: u64, _quoted: Output<quote>) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = forget)]
async fn remember(_tx: &mut MemoryConn, _order: u64) -> Result<String, StepError> {
    Ok("kept".to_owned())
}

#[saga_compensation(group = false)]
async fn forget(_order: u64, _tx: &mut MemoryConn) -> Result<(), StepError> {
    Ok(())
}

#[test]
fn it_needs_nothing_from_the_output() {
    assert_eq!(charge::UNDO.map(|undo| undo.when_unknown()), Some(true));
    assert_eq!(remember::UNDO.map(|undo| undo.when_unknown()), Some(true));
    assert!(matches!(<charge as Handler<MemoryStore>>::undo(), Undo::External(_)));
    assert!(matches!(<remember as Handler<MemoryStore>>::undo(), Undo::Transaction(_)));
}

#[test]
fn a_step_without_a_compensation_has_nothing_to_undo() {
    assert!(quote::UNDO.is_none());
    assert!(matches!(<quote as Handler<MemoryStore>>::undo(), Undo::Nothing));
}

#[test]
fn the_step_knows_what_its_compensation_sets_and_needs() {
    let undo = charge::UNDO.unwrap();
    assert_eq!((undo.options().retry_policy(&RetryPolicy::DEFAULT).attempts, undo.options().timeout.as_secs()), (Some(2), 60));
    let mut needs = Needs::default();
    undo.needs(&mut needs);
    assert_eq!(needs.outputs[0].step, "quote");
}
