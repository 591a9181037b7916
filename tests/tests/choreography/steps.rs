//! The steps, which know nothing of events.

use saga_core::{Output, StepContext, StepError, saga_compensation, saga_step};
use saga_tests::Books;
use serde::{Deserialize, Serialize};

use super::events::{CardCharged, StockReserved};

/// More than the warehouse has.
pub(crate) const QUANTITY_MAX: i64 = 10;
/// More than the bank gives.
pub(crate) const CENTS_MAX: i64 = 1_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub(crate) cents: i64,
}

#[saga_step(compensate = release_stock)]
pub(crate) async fn reserve_stock<S: Books>(tx: &mut S::Conn, quantity: i64) -> Result<i64, StepError> {
    if quantity > QUANTITY_MAX {
        return Err(StepError::reject("sold out"));
    }
    S::add(tx, "reservations", 1).await?;
    S::add(tx, "reserved", quantity).await
}

#[saga_compensation]
async fn release_stock<S: Books>(tx: &mut S::Conn, quantity: i64) -> Result<(), StepError> {
    S::add(tx, "releases", 1).await?;
    S::add(tx, "reserved", -quantity).await.map(drop)
}

#[saga_step(compensate = refund_card)]
pub(crate) async fn charge_card<S: Books>(
    tx: &mut S::Conn,
    ctx: &StepContext,
    charge: Charge,
) -> Result<CardCharged, StepError> {
    if charge.cents > CENTS_MAX {
        return Err(StepError::reject("too expensive"));
    }
    S::add(tx, ctx.key(), 1).await?;
    S::add(tx, "charges", 1).await?;
    S::add(tx, "charged", charge.cents).await?;
    Ok(CardCharged { payment: format!("payment of {}", charge.cents) })
}

#[saga_compensation]
async fn refund_card<S: Books>(
    tx: &mut S::Conn,
    charge: Charge,
    charged: Option<CardCharged>,
) -> Result<(), StepError> {
    S::add(tx, "refunds", 1).await?;
    S::add(tx, "charged", -charge.cents).await?;
    let expected = CardCharged { payment: format!("payment of {}", charge.cents) };
    assert_eq!(charged, Some(expected), "what was returned comes back");
    Ok(())
}

/// Counts what is asked for under each key.
#[saga_step]
pub(crate) async fn note_each<S: Books>(tx: &mut S::Conn, ctx: &StepContext, cents: i64) -> Result<(), StepError> {
    let (key, number) = ctx.key().rsplit_once('#').ok_or_else(|| StepError::reject("it has no number"))?;
    assert!(number.parse::<u64>().is_ok(), "{number}");
    S::add(tx, key, 1).await?;
    S::add(tx, "noted", cents).await.map(drop)
}

#[saga_step(compensate = unpack)]
pub(crate) async fn pack<S: Books>(tx: &mut S::Conn, stock: StockReserved) -> Result<i64, StepError> {
    S::add(tx, "packed", 1).await?;
    Ok(stock.quantity)
}

#[saga_compensation]
async fn unpack<S: Books>(tx: &mut S::Conn, _stock: StockReserved) -> Result<(), StepError> {
    S::add(tx, "packed", -1).await.map(drop)
}

/// It needs what the packing returned, whichever event comes first; whether the parcel was weighed is as it may be.
#[saga_step(no_compensation)]
pub(crate) async fn ship<S: Books>(
    tx: &mut S::Conn,
    ctx: &StepContext,
    _charged: CardCharged,
    Output(packed): Output<pack>,
) -> Result<i64, StepError> {
    assert_eq!(ctx.optional_output::<weigh>()?, None, "nobody weighs");
    S::add(tx, "shipped", 1).await?;
    S::add(tx, "pieces", packed).await?;
    Ok(packed)
}

#[saga_step(no_compensation)]
pub(crate) async fn weigh(quantity: i64) -> Result<i64, StepError> {
    Ok(quantity)
}
