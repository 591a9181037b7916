//! The definition: which steps an order takes, in which order.

use saga_core::{Saga, store::Store};

use crate::{
    orders::Order,
    shop::ShopConn,
    steps::{book_shipment, charge_card, confirm_order, place_order, reserve_stock},
};

/// An order is placed, its stock reserved, the card charged, the shipment booked, the order confirmed. When one of these
/// is rejected, those before it are undone, the last one first.
///
/// # Panics
///
/// Never: a test builds it.
#[expect(clippy::expect_used, reason = "it is valid whatever comes in, as a test shows")]
pub fn create_order<S: Store<Conn: ShopConn>>() -> Saga<S, Order> {
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

#[cfg(test)]
mod tests {
    use saga_sqlite::SqliteStore;

    use super::*;

    #[test]
    fn the_definition_is_valid_and_can_be_drawn() {
        let drawn = create_order::<SqliteStore>().to_mermaid();
        for step in ["place-order", "reserve-stock", "charge-card", "book-shipment", "confirm-order"] {
            assert!(drawn.contains(step), "no {step} in\n{drawn}");
        }
    }
}
