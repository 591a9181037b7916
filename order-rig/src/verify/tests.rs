use rusqlite::Connection;

use super::{Audit, Books, audit};
use crate::{outside::Book, shop};

/// A shop of two orders, one confirmed and one cancelled, in which everything is as it should be.
struct World {
    shop: Connection,
    outside: Connection,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut shop = Connection::open_in_memory().expect("in memory");
        shop::migrate(&mut shop).await.expect("migrate");
        shop.execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO products VALUES ('TEA', 'Tea', 350, 3, 5), ('CUP', 'Cup', 999, 4, 4);
             INSERT INTO orders VALUES ('A-1', 'C', 700, 90, 'confirmed', NULL), ('A-2', 'C', 350, 90, 'cancelled', 'no');
             INSERT INTO reservations VALUES ('A-1', 0, 'TEA', 2, 'sold'), ('A-2', 0, 'CUP', 1, 'released');",
        )
        .expect("a shop");
        let file = folder.path().join("outside.db");
        drop(Book::open(&file).expect("a book"));
        let outside = Connection::open(&file).expect("the book");
        outside
            .execute_batch(
                "INSERT INTO charges VALUES (1, 'A-1:charge-card', 'A-1', 700), (2, 'A-2:charge-card', 'A-2', 350);
                 INSERT INTO refunds VALUES (1, 'A-2:charge-card', 'A-2', 350);
                 INSERT INTO shipments VALUES (1, 'A-1:book-shipment', 'A-1', 95), (2, 'A-2:book-shipment', 'A-2', 300);
                 INSERT INTO cancellations VALUES (1, 'A-2:book-shipment', 'A-2', 1);
                 INSERT INTO answers (service, key, request, status, body) VALUES
                     ('gateway', 'A-1:charge-card', '/charges {\"order_id\":\"A-1\"}', 200, '{}'),
                     ('gateway', 'A-2:charge-card', '/charges {\"order_id\":\"A-2\"}', 200, '{}'),
                     ('gateway', 'A-2:charge-card:undo', '/refunds {\"order_id\":\"A-2\"}', 200, '{}'),
                     ('carrier', 'A-1:book-shipment', '/shipments {\"order_id\":\"A-1\"}', 200, '{}'),
                     ('carrier', 'A-2:book-shipment', '/shipments {\"order_id\":\"A-2\"}', 200, '{}'),
                     ('carrier', 'A-2:book-shipment:undo', '/cancellations {\"order_id\":\"A-2\"}', 200, '{}');",
            )
            .expect("books");
        Self { shop, outside, _folder: folder }
    }

    async fn audit(&mut self) -> Audit {
        audit(&Books::read(&mut self.shop, &mut self.outside).await.expect("the books can be read"))
    }
}

#[tokio::test]
async fn books_that_agree_give_no_finding() {
    let audit = World::new().await.audit().await;
    assert_eq!(audit.findings, []);
    assert_eq!((audit.products, audit.orders, audit.confirmed, audit.cancelled), (2, 2, 1, 1));
}

/// Damages one thing, and expects the audit to name the order or product, and what is wrong with it.
async fn found(damage: &str, subject: &str, wrong: &str) {
    let mut world = World::new().await;
    let table = damage.split_whitespace().find(|word| word.ends_with('s') && *word == word.to_lowercase());
    let inside = ["products", "orders", "reservations"].contains(&table.expect("a table is named"));
    let damaged = if inside { &world.shop } else { &world.outside };
    damaged.execute_batch(damage).expect("the damage is done");
    let findings = world.audit().await.findings;
    assert!(
        findings.iter().any(|finding| finding.subject == subject && finding.wrong.contains(wrong)),
        "{damage}\nfound {findings:#?}"
    );
}

#[tokio::test]
async fn stock_that_is_lost_or_made_is_found() {
    found(
        "UPDATE products SET in_stock = 2 WHERE sku = 'TEA'",
        "TEA",
        "5 were in stock at first, but 2 are left and 2",
    )
    .await;
    found("UPDATE products SET in_stock_at_first = 9 WHERE sku = 'CUP'", "CUP", "9 were in stock at first").await;
    found("UPDATE reservations SET quantity = 3 WHERE sku = 'TEA'", "TEA", "3 were sold").await;
}

#[tokio::test]
async fn orders_that_have_not_ended_are_found() {
    found("UPDATE orders SET status = 'placed' WHERE order_id = 'A-2'", "A-2", "it is placed, neither").await;
    found("DELETE FROM orders WHERE order_id = 'A-2'", "A-2", "the shop has no such order").await;
}

#[tokio::test]
async fn reservations_that_do_not_fit_their_order_are_found() {
    found(
        "UPDATE reservations SET status = 'open' WHERE order_id = 'A-1'",
        "A-1",
        "1 of its reservations are still open",
    )
    .await;
    found(
        "UPDATE reservations SET status = 'open' WHERE order_id = 'A-2'",
        "A-2",
        "1 of its reservations are still open",
    )
    .await;
    found("UPDATE reservations SET status = 'sold' WHERE order_id = 'A-2'", "A-2", "it is not confirmed, but 1").await;
    found("UPDATE reservations SET status = 'released' WHERE order_id = 'A-1'", "A-1", "it is confirmed, but 0").await;
    found("DELETE FROM reservations WHERE order_id = 'A-1'", "A-1", "it is confirmed, but 0").await;
}

#[tokio::test]
async fn money_that_should_not_be_where_it_is_is_found() {
    found(
        "UPDATE charges SET amount_cents = 699 WHERE order_id = 'A-1'",
        "A-1",
        "net charge is 699 cents, but it should be 700",
    )
    .await;
    found("DELETE FROM charges WHERE order_id = 'A-1'", "A-1", "net charge is 0 cents, but it should be 700").await;
    found("DELETE FROM refunds", "A-2", "net charge is 350 cents, but it should be 0").await;
    found("UPDATE refunds SET amount_cents = 351", "A-2", "net charge is -1 cents").await;
    found(
        "INSERT INTO charges VALUES (3, 'A-9:charge-card', 'A-9', 5)",
        "A-9",
        "net charge is 5 cents, but it should be 0",
    )
    .await;
}

#[tokio::test]
async fn a_key_that_was_charged_twice_is_found_even_when_the_sum_is_right() {
    found(
        "INSERT INTO charges VALUES (3, 'A-2:charge-card', 'A-2', 350);
         INSERT INTO refunds VALUES (2, 'A-2:charge-card', 'A-2', 350)",
        "A-2",
        "charged 2 times under the one key A-2:charge-card",
    )
    .await;
}

#[tokio::test]
async fn shipments_too_many_or_too_few_are_found() {
    found("DELETE FROM shipments WHERE order_id = 'A-1'", "A-1", "0 shipments for it, but there should be 1").await;
    found("INSERT INTO shipments VALUES (3, 'x', 'A-1', 1)", "A-1", "2 shipments for it, but there should be 1").await;
    found("DELETE FROM cancellations", "A-2", "1 shipments for it, but there should be 0").await;
}
