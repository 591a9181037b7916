//! The steps of both versions.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rusqlite::Connection;
use saga_core::{Output, State, StepContext, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

/// An order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Its key.
    pub key: String,
    /// How many pieces.
    pub pieces: u32,
}

/// A bank that is closed at first.
#[derive(Debug, Clone, Default)]
pub struct Bank(Arc<AtomicBool>);

impl Bank {
    /// From now on it takes payments.
    pub fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A payment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Payment {
    /// The bank's id of the payment.
    pub receipt: String,
}

/// The output of the reservation in the second version.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reserved {
    /// How many.
    pub pieces: u32,
    /// Their shelf.
    pub shelf: String,
}

/// The carrier of an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Carrier {
    /// Their name.
    pub name: String,
}

/// First version: reserves pieces, and returns how many.
#[saga_step(compensate = put_back)]
pub async fn take_stock(tx: &mut Connection, order: Order) -> Result<u32, StepError> {
    tx.execute("UPDATE stock SET pieces = pieces - ?1", [order.pieces])?;
    Ok(order.pieces)
}

#[saga_compensation]
async fn put_back(tx: &mut Connection, _order: Order, pieces: u32) -> Result<(), StepError> {
    tx.execute("UPDATE stock SET pieces = pieces + ?1", [pieces])?;
    Ok(())
}

/// Second version: reserves pieces, and returns their shelf.
#[saga_step(compensate = release_stock)]
pub async fn reserve_stock(tx: &mut Connection, order: Order) -> Result<Reserved, StepError> {
    tx.execute("UPDATE stock SET pieces = pieces - ?1", [order.pieces])?;
    Ok(Reserved { pieces: order.pieces, shelf: "A 4".to_owned() })
}

#[saga_compensation]
async fn release_stock(tx: &mut Connection, _order: Order, reserved: Reserved) -> Result<(), StepError> {
    tx.execute("UPDATE stock SET pieces = pieces + ?1", [reserved.pieces])?;
    Ok(())
}

/// Weighs an order: only the second version does.
#[saga_step(no_compensation)]
pub async fn weigh_order(order: Order) -> Result<u32, StepError> {
    Ok(order.pieces * 250)
}

/// Charges the card, once the bank is open.
#[saga_step(compensate = refund_card, timeout = "2s", retry(base = "10ms", cap = "50ms"))]
pub async fn charge_card(ctx: &StepContext, order: Order, State(bank): State<Bank>) -> Result<Payment, StepError> {
    if !bank.0.load(Ordering::SeqCst) {
        return Err(StepError::not_sent("the bank is closed"));
    }
    Ok(Payment { receipt: format!("{} for {}", ctx.key(), order.pieces) })
}

#[saga_compensation]
async fn refund_card(_ctx: &StepContext, _order: Order, _payment: Option<Payment>) -> Result<(), StepError> {
    Ok(())
}

/// Books a carrier: only the second version does.
#[saga_step(no_compensation)]
pub async fn book_carrier(_order: Order, Output(reserved): Output<reserve_stock>) -> Result<Carrier, StepError> {
    Ok(Carrier { name: format!("the one at shelf {}", reserved.shelf) })
}

/// Confirms the order.
#[saga_step]
pub async fn confirm_order(tx: &mut Connection, order: Order) -> Result<(), StepError> {
    tx.execute("INSERT INTO orders (key) VALUES (?1)", [order.key])?;
    Ok(())
}
