//! The five steps of an order, and their compensations.
//!
//! They are ordinary functions. A step that takes `&mut impl SqlConn` is transactional: its writes commit together with the
//! record that it ran. A step that calls another service reads its key from the context and passes it on.
//!
//! With one database, take its own connection, such as `&mut rusqlite::Connection`, instead of `&mut impl SqlConn`.

use saga_core::{Output, State, StepContext, StepError, saga_compensation, saga_step};
use saga_sql::SqlConn;
use serde::{Deserialize, Serialize};

use crate::orders::Order;
use crate::outside::{Carrier, Gateway, Payment, Shipment};

/// The highest freight price that the shop accepts, in percent of the quoted price.
const FREIGHT_PERCENT_MAX: i64 = 150;

/// Stores the order. Its saga may be new all the same: it was purged, or is another attempt at the order.
#[saga_step(compensate = cancel_order)]
pub(crate) async fn place_order(tx: &mut impl SqlConn, order: Order) -> Result<(), StepError> {
    let sql = "INSERT INTO orders (order_id, customer, total_cents, status) VALUES ($1, $2, $3, 'placed')
               ON CONFLICT (order_id) DO NOTHING";
    if tx.execute(sql, &[&order.id, &order.customer, &order.total_cents]).await? == 0 {
        return Err(StepError::reject("placed before"));
    }
    Ok(())
}

/// Undoes `place_order`: the order stays stored, with the reason of its failure.
#[saga_compensation]
pub(crate) async fn cancel_order(tx: &mut impl SqlConn, ctx: &StepContext, order: Order) -> Result<(), StepError> {
    let reason = ctx.failure().map_or("cancelled", |failure| &failure.message);
    let sql = "UPDATE orders SET status = 'cancelled', reason = $2 WHERE order_id = $1";
    tx.execute(sql, &[&order.id, &reason]).await?;
    Ok(())
}

/// The stock that was reserved for an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Reservation {
    /// Each product with its number of pieces.
    pub(crate) taken: Vec<(String, i64)>,
}

/// Reserves the stock of all items, or nothing.
#[saga_step(compensate = release_stock)]
pub(crate) async fn reserve_stock(tx: &mut impl SqlConn, order: Order) -> Result<Reservation, StepError> {
    let (mut taken, mut items) = (Vec::new(), order.items);
    // Every order takes its products in the same sequence, so that no two transactions wait for each other.
    items.sort_by(|a, b| a.sku.cmp(&b.sku));
    for item in items {
        let sql = "UPDATE products SET in_stock = in_stock - $2 WHERE sku = $1 AND in_stock >= $2";
        if tx.execute(sql, &[&item.sku, &item.quantity]).await? == 0 {
            // The rejection rolls back the reservations of the items before this one.
            return Err(StepError::reject(format!("out of stock: {}", item.sku)));
        }
        taken.push((item.sku, item.quantity));
    }
    Ok(Reservation { taken })
}

/// Undoes `reserve_stock`. A compensation gets the input and the output of its step.
#[saga_compensation]
pub(crate) async fn release_stock(
    tx: &mut impl SqlConn,
    _order: Order,
    reserved: Reservation,
) -> Result<(), StepError> {
    for (sku, quantity) in reserved.taken {
        tx.execute("UPDATE products SET in_stock = in_stock + $2 WHERE sku = $1", &[&sku, &quantity]).await?;
    }
    Ok(())
}

/// Charges the customer's card.
#[saga_step(compensate = refund_card, retry(base = "50ms", cap = "2s"), timeout = "1s")]
pub(crate) async fn charge_card(
    ctx: &StepContext,
    order: Order,
    State(gateway): State<Gateway>,
) -> Result<Payment, StepError> {
    gateway.charge(ctx.key(), order.total_cents).await
}

/// Undoes `charge_card`. It may be unknown whether the charge took effect, so this passes on the key of the charge: the gateway
/// refunds the charge, or blocks the key so that the charge never happens.
#[saga_compensation(retry(base = "50ms", cap = "5s"), timeout = "1s")]
pub(crate) async fn refund_card(
    ctx: &StepContext,
    _order: Order,
    _payment: Option<Payment>,
    State(gateway): State<Gateway>,
) -> Result<(), StepError> {
    gateway.refund(ctx.key(), ctx.original_key()).await
}

/// Books the shipment at the carrier.
#[saga_step(compensate = cancel_shipment, retry(base = "50ms", cap = "2s"), timeout = "1s")]
pub(crate) async fn book_shipment(
    ctx: &StepContext,
    order: Order,
    State(carrier): State<Carrier>,
) -> Result<Shipment, StepError> {
    carrier.book(ctx.key(), &order.ship_to.country, order.freight_cents).await
}

/// Undoes `book_shipment`, whether it took effect or not.
#[saga_compensation(retry(base = "50ms", cap = "5s"), timeout = "1s")]
pub(crate) async fn cancel_shipment(
    ctx: &StepContext,
    _order: Order,
    _shipment: Option<Shipment>,
    State(carrier): State<Carrier>,
) -> Result<(), StepError> {
    carrier.cancel(ctx.key(), ctx.original_key()).await
}

/// Confirms the order, unless the carrier's price is far above the quoted one.
#[saga_step]
pub(crate) async fn confirm_order(
    tx: &mut impl SqlConn,
    order: Order,
    Output(shipment): Output<book_shipment>,
) -> Result<(), StepError> {
    let (price, quoted) = (shipment.price_cents, order.freight_cents);
    if price > quoted.saturating_mul(FREIGHT_PERCENT_MAX) / 100 {
        return Err(StepError::reject(format!("freight too dear: {price} cents instead of {quoted}")));
    }
    tx.execute("UPDATE orders SET status = 'confirmed' WHERE order_id = $1", &[&order.id]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use saga_core::Rejection;

    use super::*;
    use crate::orders::{Address, Item};

    /// A step is a function on a connection, so its test needs no runtime.
    #[tokio::test]
    async fn stock_is_taken_and_put_back() {
        let mut conn = Connection::open_in_memory().expect("in memory");
        crate::shop::create_tables(&mut conn).await.expect("tables");
        conn.execute("INSERT INTO products (sku, name, in_stock, in_stock_at_first) VALUES ('TEA', 'Tea', 5, 5)", [])
            .expect("a product");
        let order = |quantity| Order {
            id: "A-1".to_owned(),
            customer: "C".to_owned(),
            ship_to: Address { country: "Norway".to_owned() },
            freight_cents: 100,
            items: vec![Item { sku: "TEA".to_owned(), quantity }],
            total_cents: 350,
        };
        let left = |conn: &Connection| conn.query_one("SELECT in_stock FROM products", [], |row| row.get::<_, i64>(0));

        let reservation = reserve_stock(&mut conn, order(3)).await.expect("there are five");
        assert_eq!(left(&conn), Ok(2));
        let refused = reserve_stock(&mut conn, order(3)).await.expect_err("two are left");
        assert_eq!(refused.rejection().map(Rejection::message), Some("out of stock: TEA"));
        release_stock(&mut conn, order(3), reservation).await.expect("put back");
        assert_eq!(left(&conn), Ok(5));
    }
}
