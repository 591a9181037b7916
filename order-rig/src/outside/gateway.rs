use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{LateCalls, Reply, journal::Event};

/// Asks the gateway to charge the customer's card.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Charge {
    /// What it is for.
    pub order_id: String,
    /// How much.
    pub amount_cents: i64,
}

/// What the gateway charged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Payment {
    /// The gateway's own name for it.
    pub payment_id: i64,
    /// How much.
    pub amount_cents: i64,
}

/// Asks the gateway to give back whatever was charged under a key, and to charge nothing under it from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Refund {
    /// What it was for.
    pub order_id: String,
    /// The key that the charge was asked for with.
    pub charge_key: String,
    /// The payment, where the caller knows of one.
    pub payment_id: Option<i64>,
}

pub(super) fn charge(
    tx: &Transaction<'_>,
    key: &str,
    charge: &Charge,
    declined: bool,
    late_calls: LateCalls,
) -> rusqlite::Result<(Reply, Event)> {
    let refunded = "SELECT EXISTS (SELECT 1 FROM refunds WHERE charge_key = ?1)";
    if late_calls == LateCalls::Refused && tx.query_row(refunded, [key], |row| row.get(0))? {
        return Ok((Reply::error(410, "this key was refunded, so nothing is charged under it"), Event::Refused));
    }
    if declined {
        return Ok((Reply::error(402, "card declined"), Event::Refused));
    }
    tx.execute(
        "INSERT INTO charges (key, order_id, amount_cents) VALUES (?1, ?2, ?3)",
        params![key, charge.order_id, charge.amount_cents],
    )?;
    let id = tx.last_insert_rowid();
    Ok((Reply::ok(json!({ "payment_id": id, "amount_cents": charge.amount_cents })), Event::Took(id)))
}

pub(super) fn refund(tx: &Transaction<'_>, refund: &Refund) -> rusqlite::Result<(Reply, Event)> {
    let (key, named) = (&refund.charge_key, refund.payment_id);
    if let Some(id) = named {
        let known = "SELECT EXISTS (SELECT 1 FROM charges WHERE id = ?1 AND key = ?2)";
        if !tx.query_row(known, params![id, key], |row| row.get::<_, bool>(0))? {
            return Ok((Reply::error(404, "no such payment under this key"), Event::Refused));
        }
    }
    let charged: i64 =
        tx.query_row("SELECT coalesce(sum(amount_cents), 0) FROM charges WHERE key = ?1", [key], |row| row.get(0))?;
    let refunded: i64 =
        tx.query_row("SELECT coalesce(sum(amount_cents), 0) FROM refunds WHERE charge_key = ?1", [key], |row| {
            row.get(0)
        })?;
    // With nothing left to give back the row still stands: it bars the key.
    tx.execute(
        "INSERT INTO refunds (charge_key, order_id, amount_cents) VALUES (?1, ?2, ?3)",
        params![key, refund.order_id, charged - refunded],
    )?;
    let event = match charged - refunded {
        1.. => Event::Undone(named),
        _ if charged > 0 => Event::Again,
        _ => Event::Barred(named),
    };
    Ok((Reply::ok(json!({ "refunded_cents": charged - refunded })), event))
}
