use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Reply;

/// Asks the carrier to come for a parcel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShipmentRequest {
    /// Which order it is.
    pub order_id: String,
    /// Where it goes.
    pub country: String,
    /// What the shop expects to pay.
    pub quoted_cents: i64,
}

/// What the carrier booked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shipment {
    /// The carrier's own name for it.
    pub shipment_id: i64,
    /// What the carrier asks for.
    pub price_cents: i64,
}

/// Asks the carrier to drop whatever was booked under a key, and to book nothing under it from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cancellation {
    /// Which order it was.
    pub order_id: String,
    /// The key that the shipment was asked for with.
    pub shipment_key: String,
}

pub(super) fn book(
    tx: &Transaction<'_>,
    key: &str,
    request: &ShipmentRequest,
    turned_away: bool,
    price_percent: i64,
) -> rusqlite::Result<Reply> {
    let barred = "SELECT EXISTS (SELECT 1 FROM cancellations WHERE shipment_key = ?1)";
    if tx.query_row(barred, [key], |row| row.get(0))? {
        return Ok(Reply::error(410, "this key was cancelled, so nothing is booked under it"));
    }
    if turned_away {
        return Ok(Reply::error(422, &format!("no parcels taken: {}", request.country)));
    }
    let price_cents = request.quoted_cents.saturating_mul(price_percent) / 100;
    tx.execute(
        "INSERT INTO shipments (key, order_id, price_cents) VALUES (?1, ?2, ?3)",
        params![key, request.order_id, price_cents],
    )?;
    Ok(Reply::ok(json!({ "shipment_id": tx.last_insert_rowid(), "price_cents": price_cents })))
}

pub(super) fn cancel(tx: &Transaction<'_>, cancellation: &Cancellation) -> rusqlite::Result<Reply> {
    let key = &cancellation.shipment_key;
    let open = "SELECT (SELECT count(*) FROM shipments WHERE key = ?1)
              - (SELECT coalesce(sum(shipments), 0) FROM cancellations WHERE shipment_key = ?1)";
    let open: i64 = tx.query_row(open, [key], |row| row.get(0))?;
    // With nothing left to drop the row still stands: it bars the key.
    tx.execute(
        "INSERT INTO cancellations (shipment_key, order_id, shipments) VALUES (?1, ?2, ?3)",
        params![key, cancellation.order_id, open],
    )?;
    Ok(Reply::ok(json!({ "cancelled": open })))
}
