use serde::Serialize;

use super::{
    Books,
    books::{Order, Product},
};
use crate::orders;

/// What the audit found.
#[derive(Debug, Default, Serialize)]
pub struct Audit {
    /// How many products were looked at.
    pub products: usize,
    /// How many orders were looked at.
    pub orders: usize,
    /// How many of them are confirmed.
    pub confirmed: usize,
    /// How many of them are cancelled.
    pub cancelled: usize,
    /// All that is wrong.
    pub findings: Vec<Finding>,
}

/// One thing that is wrong.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The order or the product; or what of a runtime is not at rest: a saga, its work, its outbox, a message, a letter.
    pub subject: String,
    /// What is wrong with it.
    pub wrong: String,
}

impl Audit {
    /// Notes that something is wrong.
    pub fn find(&mut self, subject: &str, wrong: impl Into<String>) {
        self.findings.push(Finding { subject: subject.to_owned(), wrong: wrong.into() });
    }
}

/// Judges the books.
pub fn audit(books: &Books) -> Audit {
    let with_status = |status: &str| books.orders.values().filter(|order| order.status == status).count();
    let mut audit = Audit {
        products: books.products.len(),
        orders: books.orders.len(),
        confirmed: with_status("confirmed"),
        cancelled: with_status("cancelled"),
        findings: Vec::new(),
    };
    for product in &books.products {
        check_stock(&mut audit, product);
    }
    for order_id in books.order_ids() {
        let order = books.orders.get(order_id);
        check_status(&mut audit, order_id, order);
        check_reservations(&mut audit, order_id, order, books);
        check_charge(&mut audit, order_id, order, books);
        check_shipments(&mut audit, order_id, order, books);
    }
    for (order_id, what) in &books.unanswered {
        audit.find(order_id, format!("it was {what} outside, where no answer to that is written down"));
    }
    for (key, order_id, times) in &books.charged_twice {
        audit.find(order_id, format!("the card was charged {times} times under the one key {key}"));
    }
    audit
}

fn check_stock(audit: &mut Audit, product: &Product) {
    let Product { sku, in_stock_at_first, left, sold } = product;
    if *in_stock_at_first != left + sold {
        audit
            .find(sku, format!("{in_stock_at_first} were in stock at first, but {left} are left and {sold} were sold"));
    }
}

/// Compares what the shop says that it had at first with what the products say.
pub fn check_first_stock(audit: &mut Audit, books: &Books, products: &[orders::Product]) {
    for Product { sku, in_stock_at_first, .. } in &books.products {
        match products.iter().find(|product| product.sku == *sku) {
            Some(product) if product.in_stock == *in_stock_at_first => {}
            Some(product) => audit.find(
                sku,
                format!("{in_stock_at_first} were in stock at first, but the products say {}", product.in_stock),
            ),
            None => audit.find(sku, "the shop has it, but it is not among the products"),
        }
    }
}

fn check_status(audit: &mut Audit, order_id: &str, order: Option<&Order>) {
    match order {
        None => audit.find(order_id, "the shop has no such order, but something was done for it"),
        Some(order) if order.status == "cancelled" && order.reason.is_empty() => {
            audit.find(order_id, "it is cancelled, but without a reason");
        }
        Some(order) if !["confirmed", "cancelled"].contains(&order.status.as_str()) => {
            audit.find(order_id, format!("it is {}, neither confirmed nor cancelled", order.status));
        }
        Some(_) => {}
    }
}

fn check_reservations(audit: &mut Audit, order_id: &str, order: Option<&Order>, books: &Books) {
    let reserved = books.reservations.get(order_id);
    let items = |status: &str| reserved.and_then(|reserved| reserved.get(status)).copied().unwrap_or(0);
    let (open, sold, released) = (items("open"), items("sold"), items("released"));
    if open > 0 {
        audit.find(order_id, format!("{open} of its reservations are still open"));
    }
    if is_confirmed(order) && (sold == 0 || released > 0) {
        audit.find(
            order_id,
            format!("it is confirmed, but {sold} of its reservations are sold and {released} released"),
        );
    }
    if !is_confirmed(order) && sold > 0 {
        audit.find(order_id, format!("it is not confirmed, but {sold} of its reservations are sold"));
    }
}

fn check_charge(audit: &mut Audit, order_id: &str, order: Option<&Order>, books: &Books) {
    let net = books.net_charges_cents.get(order_id).copied().unwrap_or(0);
    let due = order.filter(|_| is_confirmed(order)).map_or(0, |order| order.total_cents);
    if net != due {
        audit.find(order_id, format!("the gateway's net charge is {net} cents, but it should be {due}"));
    }
}

fn check_shipments(audit: &mut Audit, order_id: &str, order: Option<&Order>, books: &Books) {
    let shipments = books.shipments.get(order_id).copied().unwrap_or(0);
    let due = i64::from(is_confirmed(order));
    if shipments != due {
        audit.find(order_id, format!("the carrier has {shipments} shipments for it, but there should be {due}"));
    }
}

fn is_confirmed(order: Option<&Order>) -> bool {
    order.is_some_and(|order| order.status == "confirmed")
}
