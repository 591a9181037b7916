//! The steps of a night.

use rusqlite::Connection;
use saga_core::{
    Output, Resolved, Saga, State, StepContext, StepError, StepResultExt as _, saga::SagaError, saga_compensation,
    saga_resolution, saga_step,
};
use saga_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};

use crate::bank::{Bank, Receipt};
use crate::books::Books;

/// How often a night reports its progress.
const SAID: u32 = 20;

/// Which orders are settled in a night.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Due {
    pub(crate) orders: u32,
    pub(crate) cents: i64,
}

/// The progress of the collection.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// The number of collected payments.
    pub(crate) collected: u32,
    /// The position of the last of them in the books.
    pub(crate) last: u32,
}

/// A night of that name; it begins with the orders that no night has.
#[saga_step(compensate = release_orders)]
async fn take_orders(tx: &mut Connection, night: String) -> Result<Due, StepError> {
    tx.execute("UPDATE orders SET night = ?1 WHERE night IS NULL", [&night])?;
    let sql = "SELECT count(*), coalesce(sum(cents), 0) FROM orders WHERE night = ?1";
    let due = tx.query_row(sql, [&night], |row| Ok(Due { orders: row.get(0)?, cents: row.get(1)? }))?;
    if due.orders == 0 {
        return Err(StepError::reject("there is nothing to settle"));
    }
    Ok(due)
}

#[saga_compensation]
async fn release_orders(tx: &mut Connection, night: String) -> Result<(), StepError> {
    tx.execute("UPDATE orders SET night = NULL WHERE night = ?1", [&night])?;
    Ok(())
}

/// It takes longer than any lease. Each payment has its own key at the bank, derived from the step key. So a payment that was
/// collected, but not reported, is collected only once.
#[saga_step(exclusive, no_compensation, resolve = find_batch, timeout = "8h", retry(base = "100ms", cap = "1m"))]
async fn collect_payments(
    ctx: &StepContext,
    night: String,
    State(books): State<Books>,
    State(bank): State<Bank>,
) -> Result<Receipt, StepError> {
    let mut progress = ctx.progress::<Progress>()?.unwrap_or_default();
    println!("attempt {} begins behind {} payments", ctx.attempt(), progress.collected);
    let all = books.of_night(&night, 0)?.len() as u32;
    for order in books.of_night(&night, progress.last)? {
        if ctx.is_cancelled() {
            println!("it ends behind {} payments", progress.collected);
            return Err(StepError::retry("the process was asked to end"));
        }
        bank.collect(ctx.key(), &order.id, order.cents).await?;
        progress = Progress { collected: progress.collected + 1, last: order.number };
        ctx.report(&progress)?;
        if progress.collected.is_multiple_of(all.div_ceil(SAID)) {
            println!("collected {} of {all}", progress.collected);
        }
    }
    bank.close(ctx.key()).or_retry()
}

/// Asks the bank for the batch before the step is called again.
#[saga_resolution]
async fn find_batch(
    ctx: &StepContext,
    _night: String,
    State(bank): State<Bank>,
) -> Result<Resolved<Receipt>, StepError> {
    let found = bank.find(ctx.key())?;
    println!("the bank is asked: the batch is {}", if found.is_some() { "closed" } else { "open" });
    Ok(found.map_or(Resolved::NotDone, Resolved::Done))
}

#[saga_step]
async fn book_night(
    tx: &mut Connection,
    night: String,
    Output(due): Output<take_orders>,
    Output(receipt): Output<collect_payments>,
) -> Result<(), StepError> {
    if (receipt.payments, receipt.cents) != (due.orders, due.cents) {
        return Err(StepError::reject(format!("the bank collected {receipt:?} of {due:?}")));
    }
    tx.execute("INSERT INTO nights VALUES (?1, ?2, ?3)", (&night, receipt.payments, receipt.cents))?;
    Ok(())
}

/// The saga of a night.
///
/// # Errors
/// If the definition is invalid.
pub(crate) fn settlement() -> Result<Saga<SqliteStore, String>, SagaError> {
    Saga::named("settlement")
        .input::<String>()
        .step::<take_orders>()
        .step::<collect_payments>()
        .pivot()
        .step::<book_night>()
        .build()
}
