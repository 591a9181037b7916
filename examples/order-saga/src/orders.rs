//! Orders and products, read from JSON lines.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Some editors of Windows begin a file with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One order: the input of the saga. Its id is the saga's key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    #[serde(rename = "order_id")]
    pub(crate) id: String,
    pub(crate) customer: String,
    pub(crate) ship_to: Address,
    /// The shipping price that the customer was quoted.
    pub(crate) freight_cents: i64,
    pub(crate) items: Vec<Item>,
    pub(crate) total_cents: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Address {
    pub(crate) country: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) sku: String,
    pub(crate) quantity: i64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Product {
    pub(crate) sku: String,
    pub(crate) name: String,
    pub(crate) in_stock: i64,
}

/// The lines of a file: each is an item or a problem.
pub(crate) struct Lines<T> {
    pub(crate) read: Vec<Line<T>>,
    /// A sentence for each invalid line, with the file and the line number.
    pub(crate) refused: Vec<String>,
}

pub(crate) struct Line<T> {
    /// The file and the number of the line.
    pub(crate) place: String,
    pub(crate) content: T,
}

/// Reads the orders, by default the 830 built-in ones.
pub(crate) fn read_orders(file: Option<&PathBuf>, products: &[Line<Product>]) -> anyhow::Result<Lines<Order>> {
    let skus: HashSet<&str> = products.iter().map(|product| product.content.sku.as_str()).collect();
    read_lines(file, "northwind-orders.jsonl", include_str!("../data/northwind-orders.jsonl"), |order: &Order| {
        if order.items.is_empty() {
            return Err("the order has no items".to_owned());
        }
        if let cents @ ..0 = order.total_cents.min(order.freight_cents) {
            return Err(format!("the order has an amount of {cents} cents"));
        }
        let faulty = |item: &&Item| item.quantity <= 0 || !skus.contains(item.sku.as_str());
        match order.items.iter().find(faulty) {
            Some(Item { sku, quantity: ..=0 }) => Err(format!("the order asks for no piece of {sku}")),
            Some(Item { sku, .. }) => Err(format!("the order asks for the unknown product {sku}")),
            None => Ok(()),
        }
    })
}

/// Reads the products, by default those of the built-in orders.
pub(crate) fn read_products(file: Option<&PathBuf>) -> anyhow::Result<Lines<Product>> {
    let check = |product: &Product| match product.in_stock {
        0.. => Ok(()),
        in_stock => Err(format!("product {} has {in_stock} in stock", product.sku)),
    };
    read_lines(file, "northwind-products.jsonl", include_str!("../data/northwind-products.jsonl"), check)
}

fn read_lines<T: DeserializeOwned>(
    file: Option<&PathBuf>,
    default_name: &str,
    default_text: &str,
    check: impl Fn(&T) -> Result<(), String>,
) -> anyhow::Result<Lines<T>> {
    let (name, text) = match file {
        Some(file) => {
            let name = file.display().to_string();
            let text = std::fs::read(file).with_context(|| format!("cannot read {name}"))?;
            (name, text)
        }
        None => (default_name.to_owned(), default_text.into()),
    };
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
    let mut lines = Lines { read: Vec::new(), refused: Vec::new() };
    let numbered = (1..).zip(text.split(|byte| *byte == b'\n'));
    for (number, line) in numbered.filter(|(_, line)| !line.trim_ascii().is_empty()) {
        let place = format!("{name}:{number}");
        let read = serde_json::from_slice(line).map_err(|error| {
            let problem = error.to_string();
            // The parser sees one line, which it calls line 1.
            format!("{} (column {})", problem.split(" at line ").next().unwrap_or_default(), error.column())
        });
        match read.and_then(|content| check(&content).map(|()| content)) {
            Ok(content) => lines.read.push(Line { place, content }),
            Err(problem) => lines.refused.push(format!("{place}: {problem}")),
        }
    }
    Ok(lines)
}
