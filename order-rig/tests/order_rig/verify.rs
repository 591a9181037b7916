//! The audit is itself audited: a finished shop is damaged in one place at a time, and each damage must be found.

use std::{collections::BTreeSet, path::Path};

use crate::support::{ORDERS, PRODUCTS, Shop, blocking};
use rusqlite::Connection;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// Which side a damage is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The shop's tables and the runtime's, in one database.
    Shop,
    /// The book of the services outside.
    Outside,
}
use Side::{Outside, Shop as Inside};

/// A damage, and what of the finding about it says that it was understood. `{o}` is an order that was confirmed, `{c}`
/// one that was charged and cancelled, `{d}` one whose card was declined; `{saga}` is the prefix of the runtime's tables.
const DAMAGES: [(&str, Side, &str, &str); 22] = [
    (
        "an order is gone",
        Inside,
        "DELETE FROM reservations WHERE order_id = '{o}'; DELETE FROM orders WHERE order_id = '{o}'",
        "the shop has no such order",
    ),
    (
        "an order that was cancelled is gone",
        Inside,
        "DELETE FROM reservations WHERE order_id = '{c}'; DELETE FROM orders WHERE order_id = '{c}'",
        "has placed it, but the shop has no such order",
    ),
    (
        "an order has lost its saga",
        Inside,
        "DELETE FROM {saga}sagas WHERE key = '{o}'",
        "the runtime has no saga of it",
    ),
    (
        "a saga has lost its progress",
        Inside,
        "DELETE FROM {saga}progress WHERE id = (SELECT id FROM {saga}sagas WHERE key = '{o}')",
        "the runtime has no saga of it",
    ),
    (
        "the record of a step is gone",
        Inside,
        "DELETE FROM {saga}records WHERE key = '{o}' AND step = 'charge-card'",
        "its step charge-card is done, but there is no record",
    ),
    (
        "the record of the first step is gone",
        Inside,
        "DELETE FROM {saga}records WHERE key = '{c}' AND step = 'place-order'",
        "its step place-order is undone, but there is no record",
    ),
    (
        "the record of an undo is gone",
        Inside,
        "DELETE FROM {saga}records WHERE key = '{c}' AND step LIKE 'charge-card:undo%'",
        "its step charge-card is undone, but there is no record",
    ),
    (
        "a confirmed order says that it was cancelled",
        Inside,
        "UPDATE orders SET status = 'cancelled', reason = 'x' WHERE order_id = '{o}'",
        "its saga is completed, but the order is cancelled",
    ),
    (
        "a cancelled order says that it was confirmed",
        Inside,
        "UPDATE orders SET status = 'confirmed' WHERE order_id = '{c}'",
        "its saga is compensated, but the order is confirmed",
    ),
    (
        "a cancelled order has no reason",
        Inside,
        "UPDATE orders SET reason = NULL WHERE order_id = '{c}'",
        "it is cancelled, but without a reason",
    ),
    (
        "an order is of another customer",
        Inside,
        "UPDATE orders SET customer = 'nobody' WHERE order_id = '{o}'",
        "not the one that its saga was started with",
    ),
    (
        "more was sold, and the stock is less",
        Inside,
        "UPDATE reservations SET quantity = quantity + 1 WHERE order_id = '{o}' AND item = 0; UPDATE products SET in_stock_at_first = in_stock_at_first + 1 WHERE sku = (SELECT sku FROM reservations WHERE order_id = '{o}' AND item = 0)",
        "reserved, but not ordered",
    ),
    (
        "a reservation is gone, and its stock with it",
        Inside,
        "UPDATE products SET in_stock = in_stock + (SELECT quantity FROM reservations WHERE order_id = '{o}' AND item = 0) WHERE sku = (SELECT sku FROM reservations WHERE order_id = '{o}' AND item = 0); DELETE FROM reservations WHERE order_id = '{o}' AND item = 0",
        "were ordered, but not reserved",
    ),
    (
        "there was more at first, and more is left",
        Inside,
        "UPDATE products SET in_stock = in_stock + 5, in_stock_at_first = in_stock_at_first + 5 WHERE sku = (SELECT sku FROM reservations WHERE order_id = '{o}' AND item = 0)",
        "in stock at first, but the products say",
    ),
    (
        "a saga is stuck",
        Inside,
        "UPDATE {saga}progress SET status = 'stuck', ended_at = NULL WHERE id = (SELECT id FROM {saga}sagas WHERE key = '{o}')",
        "its saga is stuck",
    ),
    (
        "the answer to a charge is gone",
        Outside,
        "DELETE FROM answers WHERE service = 'gateway' AND key = '{o}:charge-card'",
        "it was charged outside, where no answer",
    ),
    (
        "the answer to a shipment is gone",
        Outside,
        "DELETE FROM answers WHERE service = 'carrier' AND key = '{o}:book-shipment'",
        "it was shipped outside, where no answer",
    ),
    (
        "the answer to a refund is gone",
        Outside,
        "DELETE FROM answers WHERE service = 'gateway' AND key LIKE '{c}:charge-card:undo%'",
        "it was refunded outside, where no answer",
    ),
    (
        "the answer of a declined card is gone",
        Outside,
        "DELETE FROM answers WHERE service = 'gateway' AND key = '{d}:charge-card'",
        "its charge-card was refused, but the service outside has no such answer",
    ),
    (
        "a card was charged twice",
        Outside,
        "INSERT INTO charges (key, order_id, amount_cents) SELECT key, order_id, amount_cents FROM charges WHERE order_id = '{o}'",
        "charged 2 times",
    ),
    ("a refund is gone", Outside, "DELETE FROM refunds WHERE order_id = '{c}'", "net charge"),
    ("a shipment is gone", Outside, "DELETE FROM shipments WHERE order_id = '{o}'", "0 shipments for it"),
];

/// A shop in which some orders have ended, each kind of end among them.
struct Finished {
    shop: Shop,
    confirmed: String,
    cancelled: String,
    declined: String,
}

impl Finished {
    fn of(shop: Shop) -> Self {
        let ran = shop.run(&["run", "--json", "--orders", ORDERS, "--products", PRODUCTS, "--concurrency", "1"]);
        assert_eq!(ran.code, 0, "{ran}");
        let one = |sql: &'static str| {
            let rows = shop.rows::<String>(sql).expect("the table is there");
            rows.into_iter().next().expect("an order that ended so")
        };
        // One that was sold before it was charged, and given back after: its parcel was not taken, or was too dear.
        let confirmed = one("SELECT order_id FROM orders WHERE status = 'confirmed' ORDER BY order_id");
        let cancelled = one("SELECT order_id FROM orders WHERE status = 'cancelled'
                AND (reason LIKE 'freight too dear%' OR reason LIKE 'no parcels taken%') ORDER BY order_id");
        let declined = one("SELECT order_id FROM orders WHERE reason = 'card declined' ORDER BY order_id");
        Self { shop, confirmed, cancelled, declined }
    }

    fn damage(&self, sql: &str, saga: &str) -> String {
        [("{o}", &self.confirmed), ("{c}", &self.cancelled), ("{d}", &self.declined)]
            .iter()
            .fold(sql.replace("{saga}", saga), |sql, (place, order)| sql.replace(place, order))
    }

    /// The file with the database, and that of the services outside.
    fn copy_files(&self, to: &Shop) {
        for name in ["order-rig.db", "order-rig.db.outside.db"] {
            std::fs::copy(self.shop.path(name), to.path(name)).expect("a copy");
        }
    }
}

fn audit(shop: &Shop, more: &[&str]) -> (i32, Value) {
    let ran = shop.run(&[&["verify", "--json", "--within", "1ms", "--products", PRODUCTS], more].concat());
    (ran.code, ran.json())
}

#[track_caller]
fn is_found(what: &str, said: &str, (code, audit): &(i32, Value)) {
    let findings = audit["findings"].as_array().expect("a list");
    let found = findings.iter().any(|finding| finding["wrong"].as_str().is_some_and(|wrong| wrong.contains(said)));
    assert!(found && *code == 1, "{what}: {audit}");
}

fn execute(path: &Path, sql: &str) {
    let conn = Connection::open(path).expect("the file");
    conn.execute_batch("PRAGMA foreign_keys = OFF").expect("a pragma");
    let before = conn.total_changes();
    conn.execute_batch(sql).expect("the damage is done");
    assert!(conn.total_changes() > before, "it changed nothing: {sql}");
}

#[test]
fn each_damage_to_a_finished_shop_is_found() {
    let finished = Finished::of(Shop::new());
    assert_eq!(audit(&finished.shop, &[]).0, 0);
    for (what, side, sql, said) in DAMAGES {
        let damaged = Shop::new();
        finished.copy_files(&damaged);
        let file = if side == Inside { "order-rig.db" } else { "order-rig.db.outside.db" };
        execute(&damaged.path(file), &finished.damage(sql, "saga_"));
        is_found(what, said, &audit(&damaged, &[]));
    }
    let names: BTreeSet<&str> = DAMAGES.iter().map(|(what, ..)| *what).collect();
    assert_eq!(names.len(), DAMAGES.len());
}

#[test]
fn each_damage_to_a_finished_shop_is_found_on_postgres() {
    let finished = Finished::of(Shop::on_postgres());
    assert_eq!(audit(&finished.shop, &[]).0, 0);
    let url = finished.shop.url().expect("a database").to_owned();
    let (server, name) = url.rsplit_once('/').expect("a database in the URL");
    let run = |url: &str, sql: String| {
        blocking(async {
            let mut conn = PgConnection::connect(url).await.expect("the server");
            conn.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.expect("the statement");
            conn.close().await.expect("it closes");
        });
    };
    let book = |name: &str| format!("order-rig-{name}.outside.db");
    for (n, (what, side, sql, said)) in DAMAGES.into_iter().enumerate() {
        let copy = format!("{name}_{n}");
        run(&format!("{server}/postgres"), format!("CREATE DATABASE \"{copy}\" TEMPLATE \"{name}\""));
        let copied = format!("{server}/{copy}");
        std::fs::copy(finished.shop.path(&book(name)), finished.shop.path(&book(&copy))).expect("a copy");
        let sql = finished.damage(sql, "saga.");
        if side == Outside {
            execute(&finished.shop.path(&book(&copy)), &sql);
        } else {
            let no_keys = "ALTER TABLE reservations DROP CONSTRAINT reservations_order_id_fkey";
            run(&copied, format!("{no_keys}; {sql}"));
        }
        let audited = audit(&finished.shop, &["--store", &copied]);
        run(&format!("{server}/postgres"), format!("DROP DATABASE \"{copy}\""));
        is_found(what, said, &audited);
    }
}
