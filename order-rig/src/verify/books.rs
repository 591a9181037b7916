use std::collections::{BTreeMap, BTreeSet};

use saga_sql::SqlConn;
use serde::Deserialize;

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

#[derive(Debug, Deserialize)]
pub(super) struct Product {
    pub(super) sku: String,
    pub(super) in_stock_at_first: i64,
    pub(super) left: i64,
    pub(super) sold: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Order {
    pub(super) status: String,
    pub(super) total_cents: i64,
    pub(super) customer: String,
    pub(super) freight_cents: i64,
    /// Empty without one.
    pub(super) reason: String,
}

#[derive(Deserialize)]
struct ById {
    order_id: String,
    #[serde(flatten)]
    order: Order,
}

impl Books {
    /// Reads everything.
    pub async fn read(shop: &mut impl SqlConn, outside: &mut impl SqlConn) -> anyhow::Result<Self> {
        let products = "SELECT sku, in_stock_at_first, in_stock AS \"left\",
                               (SELECT CAST(coalesce(sum(quantity), 0) AS bigint) FROM reservations
                                WHERE reservations.sku = products.sku AND status = 'sold') AS sold
                        FROM products ORDER BY sku";
        let orders = "SELECT order_id, status, total_cents, customer, freight_cents, coalesce(reason, '') AS reason
                      FROM orders";
        let orders: Vec<ById> = shop.query(orders, &[]).await?;
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
            products: shop.query(products, &[]).await?,
            orders: orders.into_iter().map(|ById { order_id, order }| (order_id, order)).collect(),
            net_charges_cents: all(outside, net_charges).await?,
            charged_twice: outside.query(charged_twice, &[]).await?,
            shipments: all(outside, shipments).await?,
            charges_answered: all(outside, CHARGES_ANSWERED).await?,
            shipments_answered: all(outside, SHIPMENTS_ANSWERED).await?,
            unanswered: outside.query(UNANSWERED, &[]).await?,
            ..Self::default()
        };
        let items: Vec<(String, i64, String, i64)> = shop.query(items, &[]).await?;
        for (order_id, item, sku, pieces) in items {
            books.items.entry(order_id).or_default().push((item, sku, pieces));
        }
        let reserved: Vec<(String, String, i64)> = shop.query(reserved, &[]).await?;
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

async fn all<T: serde::de::DeserializeOwned + Send, A: FromIterator<T>>(
    conn: &mut impl SqlConn,
    sql: &'static str,
) -> anyhow::Result<A> {
    Ok(conn.query(sql, &[]).await?.into_iter().collect())
}
