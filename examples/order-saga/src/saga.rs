//! The definition: the steps of an order.

use saga_core::Saga;
use saga_core::saga::SagaError;
use saga_sql::SqlStore;

use crate::orders::Order;
use crate::outside::Shipment;
use crate::steps::{book_shipment, charge_card, confirm_order, place_order, reserve_stock};

/// An order is placed, its stock is reserved, the card is charged, the shipment is booked, and the order is confirmed. If a
/// step is rejected, the earlier steps are undone in reverse order. The result is the shipment.
pub(crate) fn create_order<S: SqlStore>() -> Result<Saga<S, Order, Shipment>, SagaError> {
    Saga::named("create-order")
        .input::<Order>()
        .step::<place_order>()
        .step::<reserve_stock>()
        .step::<charge_card>()
        .step::<book_shipment>()
        .step::<confirm_order>()
        .returns::<book_shipment>()
        .build()
}
