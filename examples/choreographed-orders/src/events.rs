//! The events of the services. An event says what happened, and not which service should react.

use saga_core::Event;
use serde::{Deserialize, Serialize};

/// A product and a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) sku: String,
    pub(crate) quantity: i64,
}

/// A customer placed an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OrderPlaced {
    pub(crate) items: Vec<Item>,
    pub(crate) cents: i64,
    /// Whether a part of the order is still missing in the warehouse.
    #[serde(default)]
    pub(crate) awaits_delivery: bool,
}

/// The goods are reserved for this order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StockReserved {
    pub(crate) pieces: i64,
}

/// The stock of a product is too low.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StockRejected {
    pub(crate) reason: String,
}

/// The card was charged. This is the output of the step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CardCharged {
    pub(crate) payment: String,
}

/// The card was not charged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CardDeclined {
    pub(crate) reason: String,
}

/// The order was sent: from here on nothing is undone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OrderShipped {
    pub(crate) pieces: i64,
}

/// The order was not shipped in time, and will not be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OrderExpired {}

macro_rules! names {
    ($($event:ident = $name:literal),* $(,)?) => {$(
        impl Event for $event {
            const NAME: &'static str = $name;
        }
    )*};
}

names! {
    OrderPlaced = "order-placed",
    StockReserved = "stock-reserved",
    StockRejected = "stock-rejected",
    CardCharged = "card-charged",
    CardDeclined = "card-declined",
    OrderShipped = "order-shipped",
    OrderExpired = "order-expired",
}
