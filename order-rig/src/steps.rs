//! The five steps of an order and what undoes them.
//!
//! They are ordinary functions: a test calls `reserve_stock(&mut conn, order)` and needs no runtime. They are written for
//! every database that the shop can be in; a program with one database writes `&mut PgConnection` instead of `&mut impl SqlConn`.

use saga_core::{Output, State, StepContext, StepError, saga_compensation, saga_step};
use saga_sql::SqlConn;
use serde::{Deserialize, Serialize};

use crate::{
    contracts,
    orders::Order,
    outside::{CancelOutcome, Carrier, Charge, Gateway, Payment, Refund, Shipment, ShipmentRequest},
};

/// The shop pays for freight up to this much of what it quoted, in percent.
const FREIGHT_PERCENT_MAX: i128 = 150;

/// Writes the order down.
#[saga_step(compensate = cancel_order, timeout = "3s")]
pub async fn place_order(tx: &mut impl SqlConn, order: Order) -> Result<(), StepError> {
    tx.execute(
        "INSERT INTO orders (order_id, customer, total_cents, freight_cents, status) VALUES ($1, $2, $3, $4, 'placed')",
        &[&order.order_id, &order.customer, &order.total_cents, &order.freight_cents],
    )
    .await?;
    Ok(())
}

/// Undoes `place_order`: the order stays in the books, with the reason why nothing came of it.
#[saga_compensation]
pub async fn cancel_order(tx: &mut impl SqlConn, ctx: &StepContext, order: Order) -> Result<(), StepError> {
    let reason = ctx.failure().map_or("cancelled", |failure| &failure.message);
    tx.execute("UPDATE orders SET status = 'cancelled', reason = $2 WHERE order_id = $1", &[&order.order_id, &reason])
        .await?;
    Ok(())
}

/// What was taken off the shelves for an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reservation {
    /// Each product and how many pieces of it.
    pub taken: Vec<(String, i64)>,
}

/// Takes what was ordered off the shelves, all of it or nothing.
#[saga_step(compensate = release_stock, timeout = "3s")]
pub async fn reserve_stock(tx: &mut impl SqlConn, order: Order) -> Result<Reservation, StepError> {
    let mut taken = Vec::new();
    let mut items: Vec<_> = order.items.into_iter().zip(0_i64..).collect();
    // All orders take their products in the same sequence, so that no two of them wait for each other.
    items.sort_by(|(a, _), (b, _)| a.sku.cmp(&b.sku));
    for (item, number) in items {
        let found = tx
            .execute(
                "UPDATE products SET in_stock = in_stock - $2 WHERE sku = $1 AND in_stock >= $2",
                &[&item.sku, &item.quantity],
            )
            .await?;
        if found == 0 {
            // What was taken for the items before this one is rolled back with the rejection.
            return Err(StepError::reject(format!("out of stock: {}", item.sku)));
        }
        tx.execute(
            "INSERT INTO reservations (order_id, item, sku, quantity, status) VALUES ($1, $2, $3, $4, 'open')",
            &[&order.order_id, &number, &item.sku, &item.quantity],
        )
        .await?;
        taken.push((item.sku, item.quantity));
    }
    Ok(Reservation { taken })
}

/// Undoes `reserve_stock`: puts back what it took.
#[saga_compensation]
pub async fn release_stock(tx: &mut impl SqlConn, order: Order, reservation: Reservation) -> Result<(), StepError> {
    for (sku, quantity) in reservation.taken {
        tx.execute("UPDATE products SET in_stock = in_stock + $2 WHERE sku = $1", &[&sku, &quantity]).await?;
    }
    tx.execute("UPDATE reservations SET status = 'released' WHERE order_id = $1", &[&order.order_id]).await?;
    Ok(())
}

/// Charges the customer's card.
///
/// It implements a contract, so that it can be a step of a saga here or be hosted for the saga of another service.
#[saga_step(
    implements = contracts::charge_card,
    compensate = refund_card,
    retry(attempts = 8, base = "50ms", cap = "2s"),
    timeout = "1s",
    on_exhausted = "compensate",
)]
pub async fn charge_card(
    ctx: &StepContext,
    charge: Charge,
    State(gateway): State<Gateway>,
) -> Result<Payment, StepError> {
    gateway.charge(ctx.key(), &charge).await
}

/// Undoes `charge_card`. The charge may or may not have gone through, so it is undone by the key it was asked for
/// with: what was charged is given back, and what was not never will be.
#[saga_compensation(retry(attempts = 20, base = "50ms", cap = "5s"), timeout = "1s")]
pub async fn refund_card(
    ctx: &StepContext,
    charge: Charge,
    payment: Option<Payment>,
    State(gateway): State<Gateway>,
) -> Result<(), StepError> {
    let refund = Refund {
        order_id: charge.order_id,
        charge_key: ctx.original_key().to_owned(),
        payment_id: payment.map(|payment| payment.payment_id),
    };
    gateway.refund(ctx.key(), &refund).await
}

/// Has the carrier come for the parcel.
#[saga_step(
    implements = contracts::book_shipment,
    compensate = cancel_shipment,
    retry(attempts = 8, base = "50ms", cap = "2s"),
    timeout = "1s",
    on_exhausted = "compensate",
)]
pub async fn book_shipment(
    ctx: &StepContext,
    request: ShipmentRequest,
    State(carrier): State<Carrier>,
) -> Result<Shipment, StepError> {
    carrier.book(ctx.key(), &request).await
}

/// Undoes `book_shipment`, whether or not it went through.
#[saga_compensation(retry(attempts = 20, base = "50ms", cap = "5s"), timeout = "1s")]
pub async fn cancel_shipment(
    ctx: &StepContext,
    request: ShipmentRequest,
    _shipment: Option<Shipment>,
    State(carrier): State<Carrier>,
) -> Result<(), StepError> {
    let cancellation = CancelOutcome { order_id: request.order_id, shipment_key: ctx.original_key().to_owned() };
    carrier.cancel(ctx.key(), &cancellation).await
}

/// Sells what was reserved, unless the carrier asks for far more than the customer was told.
#[saga_step(timeout = "3s")]
pub async fn confirm_order(
    tx: &mut impl SqlConn,
    order: Order,
    Output(shipment): Output<book_shipment>,
) -> Result<(), StepError> {
    if i128::from(shipment.price_cents) * 100 > i128::from(order.freight_cents) * FREIGHT_PERCENT_MAX {
        return Err(StepError::reject(format!(
            "freight too dear: {} cents instead of {}",
            shipment.price_cents, order.freight_cents
        )));
    }
    tx.execute("UPDATE reservations SET status = 'sold' WHERE order_id = $1", &[&order.order_id]).await?;
    tx.execute("UPDATE orders SET status = 'confirmed' WHERE order_id = $1", &[&order.order_id]).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
