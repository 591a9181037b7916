// pass: the order saga as the documentation writes it
#![deny(warnings)]
#![allow(missing_docs, missing_debug_implementations)]

use saga_core::{Output, State, StepContext, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

pub struct PgConnection;

#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    total: u64,
}

#[derive(Serialize, Deserialize)]
pub struct Reservation;

#[derive(Serialize, Deserialize)]
pub struct Payment;

#[derive(Clone)]
pub struct Gateway;

impl Gateway {
    async fn charge(&self, _key: &str, _total: u64) -> Result<Payment, StepError> {
        Ok(Payment)
    }
}

/// A step with a transaction.
#[saga_step(compensate = release_stock)]
async fn reserve_stock(_tx: &mut PgConnection, _order: Order) -> Result<Reservation, StepError> {
    Ok(Reservation)
}

/// Undoes `reserve_stock`.
#[saga_compensation]
async fn release_stock(_tx: &mut PgConnection, _order: Order, _reservation: Reservation) -> Result<(), StepError> {
    Ok(())
}

/// A step without a transaction.
#[saga_step(compensate = refund_card, retry(attempts = 8, base = "100ms", cap = "30s"), timeout = "10s")]
async fn charge_card(ctx: &StepContext, order: Order, State(gateway): State<Gateway>) -> Result<Payment, StepError> {
    gateway.charge(ctx.key(), order.total).await
}

/// The charge may or may not have gone through.
#[saga_compensation]
async fn refund_card(
    _ctx: &StepContext,
    _order: Order,
    _payment: Option<Payment>,
    State(_gateway): State<Gateway>,
) -> Result<(), StepError> {
    Ok(())
}

/// A step that needs what an earlier one returned.
#[saga_step]
async fn confirm_order(
    _tx: &mut PgConnection,
    _order: Order,
    Output(_payment): Output<charge_card>,
) -> Result<(), StepError> {
    Ok(())
}

struct PostgresStore;

impl saga_core::store::Store for PostgresStore {
    type Conn = PgConnection;
}

fn takes<T: saga_core::step::Handler<PostgresStore, Input = Order>>() {
    let _ = <T::Compensation as saga_core::step::CompensationHandler<PostgresStore>>::handler();
}

fn main() {
    takes::<reserve_stock>();
    takes::<charge_card>();
    takes::<confirm_order>();
    let mut conn = PgConnection;
    drop(reserve_stock(&mut conn, Order { total: 1 }));
}
