//! The saga of the test: it has one account or two to itself from its first step to its last commit, and calls the bank under a lock.

use std::time::Duration;

use saga_core::{Entity, Locked, Saga, SemanticLock, State, StepContext, StepError, saga_compensation, saga_step};
use saga_tests::Books;

use super::bank::Bank;

pub(super) const ACCOUNTS: u32 = 3;

struct Account;

impl SemanticLock for Account {
    const NAME: &'static str = "account";
}

pub(super) fn account_of(order: u32) -> u32 {
    order % ACCOUNTS
}

/// Every third order has a second account.
fn accounts_of(order: u32) -> Vec<u32> {
    let account = account_of(order);
    if (order / ACCOUNTS).is_multiple_of(3) { vec![account, (account + 1) % ACCOUNTS] } else { vec![account] }
}

fn entity(account: u32) -> Entity {
    Entity::new("account", account)
}

/// Notes in the books that a saga has its accounts. Another saga that had one, or a token that is not higher, is torn.
#[saga_step(compensate = leave_again)]
async fn enter<S: Books>(tx: &mut S::Conn, order: u32, locked: Locked<Account>) -> Result<(), StepError> {
    for account in accounts_of(order) {
        let inside = S::add(tx, &format!("inside {account}"), 1).await?;
        let token = locked.token_of(&entity(account)).unwrap().cast_signed();
        let highest = S::add(tx, &format!("token {account}"), 0).await?;
        S::add(tx, &format!("token {account}"), token - highest).await?;
        S::add(tx, "torn", i64::from(inside != 1 || token <= highest)).await?;
    }
    Ok(())
}

async fn leave_accounts<S: Books>(tx: &mut S::Conn, order: u32) -> Result<(), StepError> {
    for account in accounts_of(order) {
        S::add(tx, &format!("inside {account}"), -1).await?;
    }
    Ok(())
}

#[saga_compensation]
async fn leave_again<S: Books>(tx: &mut S::Conn, order: u32) -> Result<(), StepError> {
    leave_accounts::<S>(tx, order).await?;
    S::add(tx, "turned round", 1).await?;
    Ok(())
}

/// Half of the orders call the bank for an account that they have no semantic lock on.
#[saga_step(no_compensation, lock = |order: &u32| Entity::new("card", (order / 2) % ACCOUNTS))]
async fn call_bank(ctx: &StepContext, order: u32, locked: Locked, State(bank): State<Bank>) -> Result<(), StepError> {
    let card = (order / 2) % ACCOUNTS;
    bank.note("begin", card, locked.token(), ctx.saga_key());
    tokio::time::sleep(Duration::from_millis(u64::from(order % 5))).await;
    bank.note("end", card, locked.token(), ctx.saga_key());
    Ok(())
}

/// A lock that the transaction of the step takes. Every fourth order is refused.
#[saga_step(no_compensation, lock = |order: &u32| Entity::new("ledger", account_of(*order)))]
async fn decide<S: Books>(tx: &mut S::Conn, order: u32, locked: Locked) -> Result<(), StepError> {
    let name = format!("ledger {}", account_of(order));
    let highest = S::add(tx, &name, 0).await?;
    S::add(tx, &name, locked.token().cast_signed() - highest).await?;
    S::add(tx, "torn", i64::from(locked.token().cast_signed() <= highest)).await?;
    if order.is_multiple_of(4) { Err(StepError::reject("refused")) } else { Ok(()) }
}

#[saga_step(no_compensation)]
async fn leave<S: Books>(tx: &mut S::Conn, order: u32) -> Result<(), StepError> {
    leave_accounts::<S>(tx, order).await?;
    S::add(tx, "done", 1).await?;
    Ok(())
}

pub(super) fn transfer<S: Books>() -> Saga<S, u32> {
    Saga::named("transfer")
        .input::<u32>()
        .semantic_lock::<Account, _>(|order: &u32| accounts_of(*order).into_iter().map(entity).collect::<Vec<_>>())
        .step::<enter>()
        .step::<call_bank>()
        .step::<decide>()
        .step::<leave>()
        .build()
        .unwrap()
}
