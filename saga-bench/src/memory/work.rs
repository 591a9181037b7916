//! What every contender does.

use serde::{Deserialize, Serialize};

/// The steps of one saga.
pub(super) const STEPS_PER_SAGA: u32 = 3;

/// What is ordered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) number: u32,
    pub(super) amount: u32,
}

/// The order of that number.
pub(super) fn order(number: u32) -> Order {
    Order { number, amount: 100 + number % 10_000 }
}

pub(super) async fn reserve(order: Order) -> u32 {
    order.number
}

pub(super) async fn charge(order: Order) -> u32 {
    order.amount
}

pub(super) async fn confirm(order: Order) -> u32 {
    order.number ^ order.amount
}
