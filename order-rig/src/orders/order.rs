use serde::{Deserialize, Serialize};

use super::object::{object, objects};

/// One order: the input of the saga. Its `order_id` is the saga's key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The shop's own name for the order.
    pub order_id: String,
    /// The customer's id.
    pub customer: String,
    /// The day of the order, as `YYYY-MM-DD`.
    pub placed_on: String,
    /// Where the goods go.
    #[serde(deserialize_with = "object")]
    pub ship_to: Address,
    /// What the shop quoted for the shipment.
    pub freight_cents: i64,
    /// The lines of the order.
    #[serde(deserialize_with = "objects")]
    pub items: Vec<Item>,
    /// The sum of the lines, each rounded to whole cents.
    pub total_cents: i64,
}

/// Where an order goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Address {
    /// The addressee.
    pub name: String,
    /// The city.
    pub city: String,
    /// The country.
    pub country: String,
}

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Which product.
    pub sku: String,
    /// How many pieces.
    pub quantity: i64,
    /// The price of one piece on the day of the order.
    pub unit_price_cents: i64,
    /// The part taken off the price, from 0 to 1.
    pub discount: f64,
}

/// One product of the shop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Product {
    /// The shop's own name for the product.
    pub sku: String,
    /// What customers call it.
    pub name: String,
    /// The price of one piece today.
    pub unit_price_cents: i64,
    /// How many pieces the shop has.
    pub in_stock: i64,
    /// Whether the shop has stopped buying it; what is in stock is sold all the same.
    pub discontinued: bool,
}
