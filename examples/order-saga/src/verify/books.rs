use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Row};

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
}

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
}

impl Books {
    /// Reads everything.
    ///
    /// # Errors
    ///
    /// When one of the two cannot be read.
    pub fn read(shop: &Connection, outside: &Connection) -> rusqlite::Result<Self> {
        let mut books = Self {
            products: rows(
                shop,
                "SELECT sku, in_stock_at_first, in_stock,
                        (SELECT coalesce(sum(quantity), 0) FROM reservations
                         WHERE reservations.sku = products.sku AND status = 'sold')
                 FROM products ORDER BY sku",
                |row| {
                    Ok(Product {
                        sku: row.get(0)?,
                        in_stock_at_first: row.get(1)?,
                        left: row.get(2)?,
                        sold: row.get(3)?,
                    })
                },
            )?,
            orders: rows(shop, "SELECT order_id, status, total_cents FROM orders", |row| {
                Ok((row.get(0)?, Order { status: row.get(1)?, total_cents: row.get(2)? }))
            })?,
            net_charges_cents: rows(
                outside,
                "SELECT order_id, sum(cents) FROM (SELECT order_id, amount_cents AS cents FROM charges
                                                   UNION ALL SELECT order_id, -amount_cents FROM refunds)
                 GROUP BY order_id",
                pair,
            )?,
            charged_twice: rows(
                outside,
                "SELECT key, order_id, count(*) FROM charges GROUP BY key HAVING count(*) > 1 ORDER BY key",
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?,
            shipments: rows(
                outside,
                "SELECT order_id, sum(parcels) FROM (SELECT order_id, 1 AS parcels FROM shipments
                                                     UNION ALL SELECT order_id, -shipments FROM cancellations)
                 GROUP BY order_id",
                pair,
            )?,
            ..Self::default()
        };
        let reserved: Vec<(String, String, i64)> =
            rows(shop, "SELECT order_id, status, count(*) FROM reservations GROUP BY order_id, status", |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        for (order_id, status, items) in reserved {
            books.reservations.entry(order_id).or_default().insert(status, items);
        }
        Ok(books)
    }

    /// Every order that anybody knows of.
    pub(super) fn order_ids(&self) -> BTreeSet<&str> {
        let maps = [self.net_charges_cents.keys(), self.shipments.keys()];
        let known = self.orders.keys().chain(self.reservations.keys());
        known.chain(maps.into_iter().flatten()).map(String::as_str).collect()
    }
}

fn rows<T, C: FromIterator<T>>(
    conn: &Connection,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<C> {
    conn.prepare(sql)?.query_map([], read)?.collect()
}

fn pair(row: &Row<'_>) -> rusqlite::Result<(String, i64)> {
    Ok((row.get(0)?, row.get(1)?))
}
