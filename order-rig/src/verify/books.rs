use std::collections::{BTreeMap, BTreeSet};

use crate::shop::{Row, ShopConn};

/// What stands in the shop's tables and in the books outside, read as it is and not judged.
#[derive(Debug, Default)]
pub struct Books {
    pub(super) products: Vec<Product>,
    pub(super) orders: BTreeMap<String, Order>,
    /// For each order, in how many of its items the stock is open, sold or released.
    pub(super) reservations: BTreeMap<String, BTreeMap<String, i64>>,
    /// For each order, what was charged less what was given back.
    pub(super) net_charges_cents: BTreeMap<String, i64>,
    /// Keys under which a card was charged more than once, with the order and how often.
    pub(super) charged_twice: Vec<(String, String, i64)>,
    /// For each order, how many shipments were booked and not cancelled.
    pub(super) shipments: BTreeMap<String, i64>,
    /// For each order, which of its items are reserved, sold or released: number, product and pieces.
    pub(super) items: BTreeMap<String, Vec<(i64, String, i64)>>,
    /// Orders for which the gateway answered a charge, and the carrier a shipment.
    pub(super) charges_answered: BTreeSet<String>,
    pub(super) shipments_answered: BTreeSet<String>,
    /// What was done outside without an answer being written down: which order, and what.
    pub(super) unanswered: Vec<(String, String)>,
}

// A request is written down as its path and its body.
const CHARGES_ANSWERED: &str = "SELECT DISTINCT json_extract(substr(request, 10), '$.order_id') FROM answers
                                WHERE request LIKE '/charges {%'";
const SHIPMENTS_ANSWERED: &str = "SELECT DISTINCT json_extract(substr(request, 12), '$.order_id') FROM answers
                                  WHERE request LIKE '/shipments {%'";
/// Each thing that the services did has one answer, under its own key; the key of an undo is not that of what it undoes.
const UNANSWERED: &str = "
    SELECT order_id, 'charged' FROM charges
    WHERE NOT EXISTS (SELECT 1 FROM answers WHERE service = 'gateway' AND answers.key = charges.key)
    UNION ALL
    SELECT order_id, 'shipped' FROM shipments
    WHERE NOT EXISTS (SELECT 1 FROM answers WHERE service = 'carrier' AND answers.key = shipments.key)
    UNION ALL
    SELECT order_id, 'refunded' FROM refunds GROUP BY order_id HAVING count(*) >
        (SELECT count(*) FROM answers WHERE status = 200 AND request LIKE '/refunds {%'
                                        AND json_extract(substr(request, 10), '$.order_id') = refunds.order_id)
    UNION ALL
    SELECT order_id, 'cancelled' FROM cancellations GROUP BY order_id HAVING count(*) >
        (SELECT count(*) FROM answers WHERE status = 200 AND request LIKE '/cancellations {%'
                                        AND json_extract(substr(request, 16), '$.order_id') = cancellations.order_id)";

#[derive(Debug)]
pub(super) struct Product {
    pub(super) sku: String,
    pub(super) in_stock_at_first: i64,
    pub(super) left: i64,
    pub(super) sold: i64,
}

#[derive(Debug)]
pub(super) struct Order {
    pub(super) status: String,
    pub(super) total_cents: i64,
    pub(super) customer: String,
    pub(super) freight_cents: i64,
    /// Empty without one.
    pub(super) reason: String,
}

impl Books {
    /// Reads everything.
    pub async fn read(shop: &mut impl ShopConn, outside: &mut impl ShopConn) -> anyhow::Result<Self> {
        let products = "SELECT sku, in_stock_at_first, in_stock,
                               (SELECT CAST(coalesce(sum(quantity), 0) AS bigint) FROM reservations
                                WHERE reservations.sku = products.sku AND status = 'sold')
                        FROM products ORDER BY sku";
        let product = |row: &Row| {
            Ok(Product {
                sku: row.text(0)?,
                in_stock_at_first: row.number(1)?,
                left: row.number(2)?,
                sold: row.number(3)?,
            })
        };
        let orders = "SELECT order_id, status, total_cents, customer, freight_cents, coalesce(reason, '') FROM orders";
        let order = |row: &Row| {
            let order = Order {
                status: row.text(1)?,
                total_cents: row.number(2)?,
                customer: row.text(3)?,
                freight_cents: row.number(4)?,
                reason: row.text(5)?,
            };
            Ok((row.text(0)?, order))
        };
        let items = "SELECT order_id, item, sku, quantity FROM reservations ORDER BY order_id, item";
        let reserved = "SELECT order_id, status, count(*) FROM reservations GROUP BY order_id, status";
        let net_charges = "SELECT order_id, sum(cents) FROM (SELECT order_id, amount_cents AS cents FROM charges
                                                             UNION ALL SELECT order_id, -amount_cents FROM refunds)
                           GROUP BY order_id";
        let charged_twice = "SELECT key, order_id, count(*) FROM charges GROUP BY key HAVING count(*) > 1 ORDER BY key";
        let shipments = "SELECT order_id, sum(parcels) FROM (SELECT order_id, 1 AS parcels FROM shipments
                                                             UNION ALL SELECT order_id, -shipments FROM cancellations)
                         GROUP BY order_id";
        let mut books = Self {
            products: all(shop, products, product).await?,
            orders: all(shop, orders, order).await?,
            net_charges_cents: all(outside, net_charges, pair).await?,
            charged_twice: all(outside, charged_twice, triple).await?,
            shipments: all(outside, shipments, pair).await?,
            charges_answered: all(outside, CHARGES_ANSWERED, |row| row.text(0)).await?,
            shipments_answered: all(outside, SHIPMENTS_ANSWERED, |row| row.text(0)).await?,
            unanswered: all(outside, UNANSWERED, |row| Ok((row.text(0)?, row.text(1)?))).await?,
            ..Self::default()
        };
        let item = |row: &Row| Ok((row.text(0)?, (row.number(1)?, row.text(2)?, row.number(3)?)));
        let items: Vec<(String, (i64, String, i64))> = all(shop, items, item).await?;
        for (order_id, item) in items {
            books.items.entry(order_id).or_default().push(item);
        }
        let reserved: Vec<(String, String, i64)> = all(shop, reserved, triple).await?;
        for (order_id, status, items) in reserved {
            books.reservations.entry(order_id).or_default().insert(status, items);
        }
        Ok(books)
    }

    /// Every order that one of the books has.
    pub(super) fn order_ids(&self) -> BTreeSet<&str> {
        let maps = [self.net_charges_cents.keys(), self.shipments.keys()];
        let known = self.orders.keys().chain(self.reservations.keys());
        known.chain(maps.into_iter().flatten()).map(String::as_str).collect()
    }
}

async fn all<T, A: FromIterator<T>>(
    conn: &mut impl ShopConn,
    sql: &'static str,
    read: impl Fn(&Row) -> anyhow::Result<T>,
) -> anyhow::Result<A> {
    conn.rows(sql).await?.iter().map(read).collect()
}

fn pair(row: &Row) -> anyhow::Result<(String, i64)> {
    Ok((row.text(0)?, row.number(1)?))
}

fn triple(row: &Row) -> anyhow::Result<(String, String, i64)> {
    Ok((row.text(0)?, row.text(1)?, row.number(2)?))
}
