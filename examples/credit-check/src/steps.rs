//! The steps of an order, and what undoes them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use saga_core::{Output, Outputs, State, StepContext, StepError, SubSaga, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

/// What somebody wants.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) key: String,
    pub(crate) customer: String,
    pub(crate) pieces: u32,
    pub(crate) cents: u64,
}

/// The company that knows who pays: it holds back what a customer is about to owe, under the key that it is given.
#[derive(Debug, Clone)]
pub(crate) struct Bank {
    cents_max: u64,
    held: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Bank {
    pub(crate) fn new(cents_max: u64) -> Self {
        Self { cents_max, held: Arc::default() }
    }

    fn hold(&self, key: &str, cents: u64) -> bool {
        let is_good = cents <= self.cents_max;
        if is_good {
            self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), cents);
        }
        is_good
    }

    fn release(&self, key: &str) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Takes the pieces off the shelf. It knows nothing of the credit, and does not wait for it.
#[saga_step(compensate = release_stock)]
pub(crate) async fn reserve_stock(tx: &mut Connection, order: Order) -> Result<u32, StepError> {
    let taken = tx.execute("UPDATE stock SET pieces = pieces - ?1 WHERE pieces >= ?1", [order.pieces])?;
    if taken == 0 {
        return Err(StepError::reject("out of stock"));
    }
    Ok(order.pieces)
}

/// Puts back what was taken.
#[saga_compensation]
pub(crate) async fn release_stock(tx: &mut Connection, _order: Order, pieces: u32) -> Result<(), StepError> {
    tx.execute("UPDATE stock SET pieces = pieces + ?1", [pieces])?;
    Ok(())
}

/// Asks for credit, which is then held under the step's own key.
#[saga_step(compensate = release_credit)]
pub(crate) async fn check_credit(
    ctx: &StepContext,
    (customer, cents): (String, u64),
    State(bank): State<Bank>,
) -> Result<String, StepError> {
    if bank.hold(ctx.key(), cents) {
        Ok(format!("a hold on {customer}'s account"))
    } else {
        Err(StepError::reject(format!("no credit for {customer}")))
    }
}

/// Gives the credit back, whether or not it was given.
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

/// Packs one piece, and gives the number of its box. The saga does it for each piece of the order.
#[saga_step(compensate = unpack_piece)]
pub(crate) async fn pack_piece(tx: &mut Connection, piece: Piece) -> Result<u32, StepError> {
    let free: u32 = tx.query_one("SELECT coalesce(max(number), 0) + 1 FROM boxes", [], |row| row.get(0))?;
    let sql = "INSERT OR IGNORE INTO boxes VALUES (?1, ?2)";
    match tx.execute(sql, (free, format!("{} {}", piece.order, piece.number)))? {
        0 => Err(StepError::reject(format!("no box is left for piece {}", piece.number))),
        _ => Ok(free),
    }
}

/// Takes the piece out of its box.
#[saga_compensation]
pub(crate) async fn unpack_piece(tx: &mut Connection, _piece: Piece, packed: u32) -> Result<(), StepError> {
    tx.execute("DELETE FROM boxes WHERE number = ?1", [packed])?;
    Ok(())
}

/// Insures what is dear. Nothing is owed for a policy that is not confirmed.
#[saga_step(no_compensation)]
pub(crate) async fn insure_parcel(ctx: &StepContext, order: Order) -> Result<String, StepError> {
    Ok(format!("policy {} over {} cents", ctx.saga_key(), order.cents))
}

/// The delivery: a saga that is a step of the order's, and gives the label.
pub(crate) struct Delivery;

impl SubSaga for Delivery {
    const NAME: &'static str = "delivery";
    type Input = String;
    type Result = print_label;
}

/// Books a place on the truck.
#[saga_step(compensate = free_slot)]
pub(crate) async fn book_slot(tx: &mut Connection, key: String) -> Result<i64, StepError> {
    tx.execute("INSERT INTO slots (key) VALUES (?1)", [key])?;
    Ok(tx.last_insert_rowid())
}

/// Gives the place on the truck to somebody else.
#[saga_compensation]
pub(crate) async fn free_slot(tx: &mut Connection, _key: String, slot: i64) -> Result<(), StepError> {
    tx.execute("DELETE FROM slots WHERE number = ?1", [slot])?;
    Ok(())
}

/// A label that nobody needs is thrown away.
#[saga_step(no_compensation)]
pub(crate) async fn print_label(
    _ctx: &StepContext,
    key: String,
    Output(slot): Output<book_slot>,
) -> Result<String, StepError> {
    Ok(format!("{key}, slot {slot}"))
}

/// Stands behind them all, and takes what each of them gave.
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
