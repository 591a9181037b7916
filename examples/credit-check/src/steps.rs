//! The steps of an order, and what undoes them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use saga_core::{Output, State, StepContext, StepError, saga_compensation, saga_step};
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
    bank.release(ctx.do_key());
    Ok(())
}

/// Stands behind both branches, and takes what each of them gave.
#[saga_step]
pub(crate) async fn confirm_order(
    tx: &mut Connection,
    order: Order,
    Output(pieces): Output<reserve_stock>,
    Output(hold): Output<check_credit>,
) -> Result<(), StepError> {
    tx.execute("INSERT INTO orders VALUES (?1, ?2, ?3)", (order.key, pieces, hold))?;
    Ok(())
}
