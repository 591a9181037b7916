//! The definitions: which steps an order takes, in which order.

use saga_core::{Saga, Service, saga::SagaError, service::ServiceError, store::Store};
use saga_sql::SqlConn;

use crate::{
    contracts,
    orders::Order,
    outside::{Charge, ShipmentRequest},
    steps::{book_shipment, charge_card, confirm_order, place_order, reserve_stock},
};

/// The name of the sagas of orders.
pub const CREATE_ORDER: &str = "create-order";

/// An order is placed, its stock reserved, the card charged, the shipment booked, the order confirmed. When one of these
/// is rejected, those before it are undone, the last one first.
pub fn create_order<S: Store<Conn: SqlConn>>() -> Result<Saga<S, Order>, SagaError> {
    Saga::named(CREATE_ORDER)
        .input::<Order>()
        .step::<place_order>()
        .step::<reserve_stock>()
        .step_from::<charge_card, _>(charge)
        .step_from::<book_shipment, _>(parcel)
        .step::<confirm_order>()
        .build()
}

/// The same across services: the card is charged by the service `payments`, the shipment booked by `shipping`.
///
/// It is another version, since its steps are of another kind: a saga stays with the version that it was started with.
pub fn create_order_across_services<S: Store<Conn: SqlConn>>() -> Result<Saga<S, Order>, SagaError> {
    Saga::named(CREATE_ORDER)
        .input::<Order>()
        .version(2)
        .step::<place_order>()
        .step::<reserve_stock>()
        .step_from::<contracts::charge_card, _>(charge)
        .step_from::<contracts::book_shipment, _>(parcel)
        .step::<confirm_order>()
        .build()
}

/// The service that charges cards for the sagas of others.
pub fn payments<S: Store>() -> Result<Service<S>, ServiceError> {
    Service::named("payments").host::<charge_card>().build()
}

/// The service that books shipments for the sagas of others.
pub fn shipping<S: Store>() -> Result<Service<S>, ServiceError> {
    Service::named("shipping").host::<book_shipment>().build()
}

/// What the gateway is asked for.
fn charge(order: &Order) -> Charge {
    Charge { order_id: order.order_id.clone(), amount_cents: order.total_cents }
}

/// What the carrier is asked for.
fn parcel(order: &Order) -> ShipmentRequest {
    ShipmentRequest {
        order_id: order.order_id.clone(),
        country: order.ship_to.country.clone(),
        quoted_cents: order.freight_cents,
    }
}

#[cfg(test)]
mod tests {
    use saga_sqlite::SqliteStore;

    use super::*;

    #[test]
    fn the_definitions_are_valid_and_can_be_drawn() {
        for saga in [create_order::<SqliteStore>(), create_order_across_services()] {
            let drawn = saga.expect("it is valid").to_mermaid();
            for step in ["place-order", "reserve-stock", "charge-card", "book-shipment", "confirm-order"] {
                assert!(drawn.contains(step), "no {step} in\n{drawn}");
            }
        }
    }

    #[test]
    fn each_service_hosts_the_step_of_its_contract() {
        assert!(payments::<SqliteStore>().expect("it is valid").steps().eq(["charge-card"]));
        assert!(shipping::<SqliteStore>().expect("it is valid").steps().eq(["book-shipment"]));
    }
}
