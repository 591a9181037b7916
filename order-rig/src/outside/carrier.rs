use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{LateCalls, Reply, journal::Event};

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
pub struct CancelOutcome {
    /// Which order it was.
    pub order_id: String,
    /// The key that the shipment was asked for with.
    pub shipment_key: String,
}

/// What the carrier says to a parcel.
#[derive(Debug, Clone, Copy)]
pub(super) enum Terms {
    TurnedAway,
    /// It is taken, for so much of the freight that the shop quoted.
    Taken {
        price_percent: i64,
    },
}

pub(super) fn book(
    tx: &Transaction<'_>,
    key: &str,
    request: &ShipmentRequest,
    terms: Terms,
    late_calls: LateCalls,
) -> rusqlite::Result<(Reply, Event)> {
    let cancelled = "SELECT EXISTS (SELECT 1 FROM cancellations WHERE shipment_key = ?1)";
    if late_calls == LateCalls::Refused && tx.query_row(cancelled, [key], |row| row.get(0))? {
        return Ok((Reply::error(410, "this key was cancelled, so nothing is booked under it"), Event::Refused));
    }
    let Terms::Taken { price_percent } = terms else {
        return Ok((Reply::error(422, &format!("no parcels taken: {}", request.country)), Event::Refused));
    };
    let price_cents = request.quoted_cents.saturating_mul(price_percent) / 100;
    tx.execute(
        "INSERT INTO shipments (key, order_id, price_cents) VALUES (?1, ?2, ?3)",
        params![key, request.order_id, price_cents],
    )?;
    let id = tx.last_insert_rowid();
    Ok((Reply::ok(json!({ "shipment_id": id, "price_cents": price_cents })), Event::Took(id)))
}

pub(super) fn cancel(tx: &Transaction<'_>, cancellation: &CancelOutcome) -> rusqlite::Result<(Reply, Event)> {
    let key = &cancellation.shipment_key;
    let number = |sql: &str| tx.query_row(sql, [key], |row| row.get::<_, i64>(0));
    let booked = number("SELECT count(*) FROM shipments WHERE key = ?1")?;
    let cancelled = number("SELECT coalesce(sum(shipments), 0) FROM cancellations WHERE shipment_key = ?1")?;
    let open = booked - cancelled;
    // With nothing left to drop the row still stands: it bars the key.
    tx.execute(
        "INSERT INTO cancellations (shipment_key, order_id, shipments) VALUES (?1, ?2, ?3)",
        params![key, cancellation.order_id, open],
    )?;
    let event = match open {
        1.. => Event::Undone(None),
        _ if booked > 0 => Event::Again,
        _ => Event::Barred(None),
    };
    Ok((Reply::ok(json!({ "cancelled": open })), event))
}
