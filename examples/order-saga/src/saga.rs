//! The definition: which steps an order takes, in which order.

use saga_core::Saga;
use saga_sqlite::SqliteStore;

use crate::{
    orders::Order,
    steps::{book_shipment, charge_card, confirm_order, place_order, reserve_stock},
};

/// An order is placed, its stock reserved, the card charged, the shipment booked, the order confirmed. When one of these
/// is rejected, those before it are undone, the last one first.
///
/// # Panics
///
/// Never: a test builds it.
pub fn create_order() -> Saga<SqliteStore, Order> {
    Saga::named("create-order")
        .input::<Order>()
        .step::<place_order>()
        .step::<reserve_stock>()
        .step::<charge_card>()
        .step::<book_shipment>()
        .step::<confirm_order>()
        .build()
        .expect("create-order is a valid saga")
}
