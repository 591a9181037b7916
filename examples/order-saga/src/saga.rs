//! The definition: which steps an order takes, in which order.

use saga_core::Saga;
use saga_core::saga::SagaError;
use saga_sqlite::SqliteStore;

use crate::orders::Order;
use crate::steps::{book_shipment, charge_card, confirm_order, place_order, reserve_stock};

/// An order is placed, its stock reserved, the card charged, the shipment booked, the order confirmed. When one of these
/// steps is rejected, those before it are undone, the last one first.
///
/// # Errors
///
/// When the steps do not fit together. Whether they do does not depend on any order.
pub(crate) fn create_order() -> Result<Saga<SqliteStore, Order>, SagaError> {
    Saga::named("create-order")
        .input::<Order>()
        .step::<place_order>()
        .step::<reserve_stock>()
        .step::<charge_card>()
        .step::<book_shipment>()
        .step::<confirm_order>()
        .build()
}
