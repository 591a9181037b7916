//! The steps of an order, and their compensations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use saga_core::{Output, Outputs, State, StepContext, StepError, SubSaga, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

/// An order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) key: String,
    pub(crate) customer: String,
    pub(crate) pieces: u32,
    pub(crate) cents: u64,
}

/// The credit agency. It reserves credit of a customer under the key of the call.
#[derive(Debug, Clone)]
pub(crate) struct Bank {
    cents_max: u64,
    /// The cents that are held under each key; none of a key that was released.
    held: Arc<Mutex<BTreeMap<String, Option<u64>>>>,
}

impl Bank {
    pub(crate) fn new(cents_max: u64) -> Self {
        Self { cents_max, held: Arc::default() }
    }

    /// Holds the credit, once for one key. A call that comes later than the release of its key holds nothing.
    fn hold(&self, key: &str, customer: &str, cents: u64) -> Result<(), StepError> {
        if cents > self.cents_max {
            return Err(StepError::reject(format!("no credit for {customer}")));
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.entry(key.to_owned()).or_insert(Some(cents)) {
            Some(_) => Ok(()),
            None => Err(StepError::reject("this key was released, so nothing is held under it")),
        }
    }

    /// Releases the hold, and blocks its key from now on.
    fn release(&self, key: &str) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), None);
    }
}

/// Reserves the pieces. It runs concurrently with the credit check.
#[saga_step(compensate = release_stock)]
pub(crate) async fn reserve_stock(tx: &mut Connection, order: Order) -> Result<u32, StepError> {
    let taken = tx.execute("UPDATE stock SET pieces = pieces - ?1 WHERE pieces >= ?1", [order.pieces])?;
    if taken == 0 {
        return Err(StepError::reject("out of stock"));
    }
    Ok(order.pieces)
}

/// Releases the pieces.
#[saga_compensation]
pub(crate) async fn release_stock(tx: &mut Connection, _order: Order, pieces: u32) -> Result<(), StepError> {
    tx.execute("UPDATE stock SET pieces = pieces + ?1", [pieces])?;
    Ok(())
}

/// Reserves credit under the step's own key.
#[saga_step(compensate = release_credit)]
pub(crate) async fn check_credit(
    ctx: &StepContext,
    (customer, cents): (String, u64),
    State(bank): State<Bank>,
) -> Result<String, StepError> {
    bank.hold(ctx.key(), &customer, cents)?;
    Ok(format!("a hold on {customer}'s account"))
}

/// Releases the credit, whether it was reserved or not. If the call for it is still on its way, it holds nothing any more.
#[saga_compensation]
pub(crate) async fn release_credit(
    ctx: &StepContext,
    _asked: (String, u64),
    _hold: Option<String>,
    State(bank): State<Bank>,
) -> Result<(), StepError> {
    bank.release(ctx.original_key());
    Ok(())
}

/// One of the pieces of an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub(crate) order: String,
    pub(crate) number: u32,
}

/// Packs one piece, and returns the number of its box. The saga runs it for each piece of the order.
#[saga_step(compensate = unpack_piece)]
pub(crate) async fn pack_piece(tx: &mut Connection, piece: Piece) -> Result<u32, StepError> {
    let free: u32 = tx.query_one("SELECT coalesce(max(number), 0) + 1 FROM boxes", [], |row| row.get(0))?;
    let sql = "INSERT OR IGNORE INTO boxes VALUES (?1, ?2)";
    match tx.execute(sql, (free, format!("{} {}", piece.order, piece.number)))? {
        0 => Err(StepError::reject(format!("no box is left for piece {}", piece.number))),
        _ => Ok(free),
    }
}

/// Unpacks the piece.
#[saga_compensation]
pub(crate) async fn unpack_piece(tx: &mut Connection, _piece: Piece, packed: u32) -> Result<(), StepError> {
    tx.execute("DELETE FROM boxes WHERE number = ?1", [packed])?;
    Ok(())
}

/// Insures an expensive order. A policy that is not confirmed costs nothing.
#[saga_step(no_compensation)]
pub(crate) async fn insure_parcel(ctx: &StepContext, order: Order) -> Result<String, StepError> {
    Ok(format!("policy {} over {} cents", ctx.saga_key(), order.cents))
}

/// The delivery, a sub-saga of the order that returns the label.
pub(crate) struct Delivery;

impl SubSaga for Delivery {
    const NAME: &'static str = "delivery";
    type Input = String;
    type Output = String;
}

/// Books a place on the truck.
#[saga_step(compensate = free_slot)]
pub(crate) async fn book_slot(tx: &mut Connection, key: String) -> Result<i64, StepError> {
    tx.execute("INSERT INTO slots (key) VALUES (?1)", [key])?;
    Ok(tx.last_insert_rowid())
}

/// Releases the place on the truck.
#[saga_compensation]
pub(crate) async fn free_slot(tx: &mut Connection, _key: String, slot: i64) -> Result<(), StepError> {
    tx.execute("DELETE FROM slots WHERE number = ?1", [slot])?;
    Ok(())
}

/// Prints the label. Nobody needs to take it back: without a delivery it is waste paper.
#[saga_step(no_compensation)]
pub(crate) async fn print_label(
    _ctx: &StepContext,
    key: String,
    Output(slot): Output<book_slot>,
) -> Result<String, StepError> {
    Ok(format!("{key}, slot {slot}"))
}

/// Runs after all other steps, and takes their outputs.
#[saga_step]
pub(crate) async fn confirm_order(
    tx: &mut Connection,
    order: Order,
    Output(pieces): Output<reserve_stock>,
    Output(hold): Output<check_credit>,
    Outputs(boxes): Outputs<pack_piece>,
    policy: Option<Output<insure_parcel>>,
    Output(label): Output<Delivery>,
) -> Result<(), StepError> {
    let boxes = boxes.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let policy = policy.map(|Output(policy)| policy);
    tx.execute("INSERT INTO orders VALUES (?1, ?2, ?3, ?4, ?5, ?6)", (order.key, pieces, hold, boxes, policy, label))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_that_comes_after_its_release_holds_nothing() {
        let bank = Bank::new(100);
        let is_held = |key, cents| bank.hold(key, "ada", cents).is_ok();
        assert!(is_held("a", 70) && is_held("a", 70));
        bank.release("a");
        bank.release("late");
        assert!(!is_held("a", 70) && !is_held("late", 70));
        assert!(is_held("b", 100) && !is_held("c", 101));
        let held = bank.held.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(held.values().flatten().sum::<u64>(), 100);
    }
}
