//! The orders: a built-in sample, or a file with one order per line.

use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use crate::events::{Item, OrderPlaced};

const SAMPLE: &str = include_str!("../data/orders.jsonl");

/// An order of a file. Other fields are ignored.
#[derive(Debug, Deserialize)]
struct Line {
    order_id: String,
    items: Vec<Item>,
    total_cents: i64,
}

/// An order, and the key of the saga that it begins.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) key: String,
    pub(crate) placed: OrderPlaced,
}

/// Reads orders: those of a file, or the sample.
///
/// # Errors
/// A sentence with the invalid line.
pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<Vec<Order>> {
    match file {
        None => parse("the sample", SAMPLE),
        Some(path) => {
            let shown = path.display().to_string();
            parse(&shown, &std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?)
        }
    }
}

fn parse(name: &str, text: &str) -> anyhow::Result<Vec<Order>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let order = |(index, line): (usize, &str)| {
        let place = || format!("line {} of {name} is no order", index + 1);
        let Line { order_id, items, total_cents } = serde_json::from_str(line).with_context(place)?;
        anyhow::ensure!(items.iter().all(|item| item.quantity > 0), "{}: an item has no quantity", place());
        Ok(Order { key: order_id, placed: OrderPlaced { items, cents: total_cents, awaits_delivery: false } })
    };
    lines.map(order).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_read() {
        let orders = read(None).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(orders.len() > 10);
        assert!(orders.iter().any(|order| order.key == "TH-1001" && order.placed.items.len() > 1));
    }

    #[test]
    fn what_is_no_order_is_named() {
        let error = parse("orders.jsonl", "\n{\"order_id\":7}\n").map(drop).map_err(|error| error.to_string());
        assert_eq!(error, Err("line 2 of orders.jsonl is no order".to_owned()));
        let none = r#"{"order_id":"a","items":[{"sku":"x","quantity":0}],"total_cents":1}"#;
        let error = parse("orders.jsonl", none).map(drop).map_err(|error| error.to_string());
        assert_eq!(error, Err("line 1 of orders.jsonl is no order: an item has no quantity".to_owned()));
    }
}
