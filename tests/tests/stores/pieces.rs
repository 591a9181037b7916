//! Steps of an order, which takes pieces out of the stock.

use saga_core::{StepError, saga_compensation, saga_step};
use saga_tests::Books;

#[saga_step(compensate = put_back)]
pub(crate) async fn take_out<S: Books>(tx: &mut S::Conn, pieces: u32) -> Result<u32, StepError> {
    S::add(tx, "taken", i64::from(pieces)).await?;
    Ok(pieces)
}

#[saga_compensation]
pub(crate) async fn put_back<S: Books>(tx: &mut S::Conn, _pieces: u32, taken: u32) -> Result<(), StepError> {
    S::add(tx, "taken", -i64::from(taken)).await?;
    Ok(())
}

#[saga_step(no_compensation)]
pub(crate) async fn bill<S: Books>(tx: &mut S::Conn, pieces: u32) -> Result<(), StepError> {
    S::add(tx, "billed", i64::from(pieces)).await?;
    Ok(())
}
