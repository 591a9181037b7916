//! What the services tell each other. An event says what happened, and nothing of who should do something about it.

use saga_core::Event;
use serde::{Deserialize, Serialize};

/// A product, and how many of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) sku: String,
    pub(crate) quantity: i64,
}

/// A customer wants something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OrderPlaced {
    pub(crate) items: Vec<Item>,
    pub(crate) cents: i64,
    /// Whether a part of it is still on its way to the warehouse.
    #[serde(default)]
    pub(crate) awaits_delivery: bool,
}

/// The goods lie apart for this order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StockReserved {
    pub(crate) pieces: i64,
}

/// There is not enough of something.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StockRejected {
    pub(crate) reason: String,
}

/// The card was charged. It is what the step itself returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CardCharged {
    pub(crate) payment: String,
}

/// The card was not charged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CardDeclined {
    pub(crate) reason: String,
}

/// The order has left the house: from here on nothing is undone.
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
