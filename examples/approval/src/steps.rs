//! The steps of an order, their compensations, and the signal that it waits for.

use std::fmt;

use rusqlite::Connection;
use saga_core::{Signal, Signaled, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

/// An order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) key: String,
    pub(crate) pieces: u32,
    pub(crate) cents: u64,
}

/// The answer to an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Approval {
    Granted { by: String },
    Declined { by: String },
    NoAnswer,
}

impl Signal for Approval {
    const NAME: &'static str = "approval";
}

impl fmt::Display for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted { by } => write!(f, "granted by {by}"),
            Self::Declined { by } => write!(f, "declined by {by}"),
            Self::NoAnswer => f.write_str("nobody answered"),
        }
    }
}

/// Reserves the pieces.
#[saga_step(compensate = release_stock)]
pub(crate) async fn reserve_stock(tx: &mut Connection, order: Order) -> Result<u32, StepError> {
    let taken = tx.execute("UPDATE stock SET pieces = pieces - ?1 WHERE pieces >= ?1", [order.pieces])?;
    if taken == 0 { Err(StepError::reject("out of stock")) } else { Ok(order.pieces) }
}

/// Releases the pieces.
#[saga_compensation]
pub(crate) async fn release_stock(tx: &mut Connection, _order: Order, pieces: u32) -> Result<(), StepError> {
    tx.execute("UPDATE stock SET pieces = pieces + ?1", [pieces])?;
    Ok(())
}

/// Confirms or rejects the order by the answer.
#[saga_step]
pub(crate) async fn confirm_order(
    tx: &mut Connection,
    order: Order,
    approval: Option<Signaled<Approval>>,
) -> Result<(), StepError> {
    let by = match approval {
        None => "nobody was asked".to_owned(),
        Some(Signaled(Approval::Granted { by })) => by,
        Some(Signaled(other)) => return Err(StepError::reject(other.to_string())),
    };
    tx.execute("INSERT INTO orders VALUES (?1, ?2, ?3)", (order.key, order.pieces, by))?;
    Ok(())
}

/// Sends the receipt. It runs after the pivot, so the order can no longer fail.
#[saga_step]
pub(crate) async fn send_receipt(_order: Order) -> Result<(), StepError> {
    Ok(())
}
