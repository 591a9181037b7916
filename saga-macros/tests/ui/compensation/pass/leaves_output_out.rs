// pass: a compensation that leaves the output out runs for unknown outcomes too
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::step::{CompensationHandler, Ignored, Step, Undo};
use saga_core::{Output, StepContext, StepError, saga_compensation, saga_step};

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
    let undo = charge::UNDO.unwrap();
    assert!(undo.when_unknown());
    assert!(matches!(undo.arguments(1, None), Some((1, Ignored))));
    assert!(matches!(undo.arguments(1, Some("paid".to_owned())), Some((1, Ignored))));
    assert!(remember::UNDO.unwrap().when_unknown());
    assert!(quote::UNDO.is_none());
    assert!(matches!(<refund as CompensationHandler<MemoryStore>>::handler(), Undo::External(_)));
    assert!(matches!(<forget as CompensationHandler<MemoryStore>>::handler(), Undo::Transaction(_)));
}
