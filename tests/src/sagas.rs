use saga_core::{Event, Output, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

use crate::{Act, Shop, World};

/// What the saga is started with.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Order {
    /// How much is booked, charged and shipped.
    pub amount: i64,
    /// Whatever makes the payload long.
    pub note: String,
}

impl Order {
    /// An order of so much.
    pub fn of(amount: i64) -> Self {
        Self { amount, note: String::new() }
    }
}

/// Something was booked.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct Booked {
    /// By which call.
    pub by: String,
}

impl Event for Booked {
    const NAME: &'static str = "booked";
}

/// `book` (transaction), `charge` (call; its compensation takes an `Option`), `ship` (call; its compensation needs the
/// output), and `finish` (transaction), behind which nothing can be undone.
///
/// # Panics
/// Never: the definition is a valid one.
pub fn order_saga<S: Shop>() -> Saga<S, Order> {
    let saga = Saga::named("order").input::<Order>();
    saga.step::<book>().step::<charge>().step::<ship>().step::<finish>().build().expect("a valid saga")
}

/// Books in a transaction. What is planned happens after the writes, so that a failure has something to roll back.
///
/// # Errors
/// The planned one.
#[saga_step(compensate = unbook, retry(attempts = 3, base = "1ms", cap = "5ms"), timeout = "5s", on_exhausted = "compensate")]
pub async fn book<S: Shop>(
    conn: &mut S::Conn,
    ctx: &StepContext,
    order: Order,
    State(world): State<World>,
) -> Result<i64, StepError> {
    S::add(conn, "booked", order.amount)?;
    S::add(conn, ctx.key(), 1)?;
    ctx.emit(&Booked { by: ctx.key().to_owned() })?;
    if world.enter(ctx).await? == Act::EndTransaction {
        S::end_transaction(conn)?;
    }
    Ok(order.amount)
}

/// Undoes `book`.
///
/// # Errors
/// The planned one.
#[saga_compensation(retry(attempts = 3, base = "1ms", cap = "5ms"), timeout = "5s")]
pub(crate) async fn unbook<S: Shop>(
    conn: &mut S::Conn,
    ctx: &StepContext,
    _order: Order,
    booked: i64,
    State(world): State<World>,
) -> Result<(), StepError> {
    S::add(conn, "booked", -booked)?;
    S::add(conn, ctx.key(), 1)?;
    ctx.emit(&Booked { by: ctx.key().to_owned() })?;
    if world.enter(ctx).await? == Act::EndTransaction {
        S::end_transaction(conn)?;
    }
    Ok(())
}

/// Calls the outside world, with the step's own key.
///
/// # Errors
/// The planned one.
#[saga_step(compensate = refund, retry(attempts = 3, base = "1ms", cap = "5ms"), timeout = "5s", on_exhausted = "compensate")]
pub async fn charge(ctx: &StepContext, order: Order, State(world): State<World>) -> Result<i64, StepError> {
    let act = world.enter(ctx).await?;
    world.happen(ctx.key(), order.amount);
    if act == Act::LoseAnswer { Err(StepError::retry("connection reset")) } else { Ok(order.amount) }
}

/// Undoes `charge`, whether it happened or not.
///
/// # Errors
/// The planned one.
#[saga_compensation(retry(attempts = 3, base = "1ms", cap = "5ms"), timeout = "5s")]
pub(crate) async fn refund(
    ctx: &StepContext,
    _order: Order,
    _charged: Option<i64>,
    State(world): State<World>,
) -> Result<(), StepError> {
    world.enter(ctx).await?;
    world.take_back(ctx.key(), ctx.original_key());
    Ok(())
}

/// Calls the outside world with what `charge` returned.
///
/// # Errors
/// The planned one.
#[saga_step(compensate = call_back, retry(attempts = 3, base = "1ms", cap = "5ms"), timeout = "5s", on_exhausted = "compensate")]
pub async fn ship(
    ctx: &StepContext,
    _order: Order,
    Output(charged): Output<charge>,
    State(world): State<World>,
) -> Result<i64, StepError> {
    let act = world.enter(ctx).await?;
    world.happen(ctx.key(), charged);
    if act == Act::LoseAnswer { Err(StepError::retry("connection reset")) } else { Ok(charged) }
}

/// Undoes `ship`, for which it must know what was shipped.
///
/// # Errors
/// The planned one.
#[saga_compensation(retry(attempts = 3, base = "1ms", cap = "5ms"), timeout = "5s")]
pub(crate) async fn call_back(
    ctx: &StepContext,
    _order: Order,
    _shipped: i64,
    State(world): State<World>,
) -> Result<(), StepError> {
    world.enter(ctx).await?;
    world.take_back(ctx.key(), ctx.original_key());
    Ok(())
}

/// Ends the order in a transaction.
///
/// # Errors
/// The planned one.
#[saga_step(retry(attempts = 3, base = "1ms", cap = "5ms"), timeout = "5s", on_exhausted = "compensate")]
pub async fn finish<S: Shop>(
    conn: &mut S::Conn,
    ctx: &StepContext,
    order: Order,
    State(world): State<World>,
) -> Result<(), StepError> {
    S::add(conn, "finished", order.amount)?;
    S::add(conn, ctx.key(), 1)?;
    ctx.emit(&Booked { by: ctx.key().to_owned() })?;
    world.enter(ctx).await?;
    Ok(())
}
