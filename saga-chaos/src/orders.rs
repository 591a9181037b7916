//! The orders that flow: made from the seed, in files of so many each.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use order_rig::{
    orders::{Address, Item, Order, Product},
    outside::{Dice, Hold},
};
use saga_testkit::sim::Random;

/// How many orders one run of the program is given.
pub(crate) const WAVE: u64 = 120;
const PRODUCTS: u64 = 20;
/// Of these there is little, so that some orders cannot be filled.
const SCARCE: u64 = 3;

/// Where orders come from.
#[derive(Debug, Clone)]
pub(crate) struct OrderBook {
    seed: u64,
    folder: PathBuf,
    first: Vec<String>,
}

impl OrderBook {
    /// Orders of that seed, in files in that folder. The services outside hold each call under the key of the payment
    /// of the first `held_past_undo` orders until its undo has come.
    pub(crate) fn new(seed: u64, folder: &Path, held_per_mille: u32, held_past_undo: usize) -> Self {
        let dice = Dice::new(seed);
        let is_held = |id: &String| {
            let key = format!("{id}:charge-card");
            dice.hold(&key, 1, held_per_mille) == Hold::PastUndo && !dice.declines(&key)
        };
        let ids = (0..).map(|number| format!("H{seed}-{number}")).filter(is_held);
        // With a share of nothing there would be none to find.
        let wanted = if held_per_mille == 0 { 0 } else { held_past_undo };
        Self { seed, folder: folder.to_path_buf(), first: ids.take(wanted).collect() }
    }

    /// The file with all products.
    pub(crate) fn write_products(&self) -> anyhow::Result<PathBuf> {
        let product = |number: u64| Product {
            sku: sku(number),
            name: format!("product {number}"),
            unit_price_cents: price_cents(number),
            in_stock: if number < SCARCE { 60 } else { 10_000_000 },
            discontinued: false,
        };
        self.write("products.jsonl", (0..PRODUCTS).map(product))
    }

    /// The file with the orders of one wave.
    pub(crate) fn write_wave(&self, wave: u64) -> anyhow::Result<PathBuf> {
        self.write_orders(wave, self.keys(wave))
    }

    /// The file with so many orders that are started at once, as the wave of that number.
    pub(crate) fn write_rush(&self, wave: u64, orders: u64) -> anyhow::Result<PathBuf> {
        self.write_orders(wave, self.rush_keys(wave, orders))
    }

    /// The keys of so many orders that are started at once.
    pub(crate) fn rush_keys(&self, wave: u64, orders: u64) -> Vec<String> {
        (0..orders).map(|nth| format!("R{}-{wave}-{nth}", self.seed)).collect()
    }

    fn write_orders(&self, wave: u64, keys: Vec<String>) -> anyhow::Result<PathBuf> {
        let name = format!("orders-{wave}.jsonl");
        let path = self.folder.join(&name);
        // A process may be reading it.
        if path.exists() {
            return Ok(path);
        }
        let mut random = Random::new(self.seed ^ (wave + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let orders = keys.into_iter().map(|key| order(key, &mut random)).collect::<Vec<_>>();
        self.write(&name, orders)
    }

    /// The keys of the orders of one wave.
    pub(crate) fn keys(&self, wave: u64) -> Vec<String> {
        let first = self.first.iter().filter(|_| wave == 0).cloned();
        first.chain((0..WAVE).map(|nth| format!("C{}-{}", self.seed, wave * WAVE + nth))).collect()
    }

    fn write<T: serde::Serialize>(&self, name: &str, rows: impl IntoIterator<Item = T>) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(name);
        let lines: Result<Vec<String>, _> = rows.into_iter().map(|row| serde_json::to_string(&row)).collect();
        std::fs::write(&path, lines?.join("\n") + "\n").with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

fn order(order_id: String, random: &mut Random) -> Order {
    let count = random.between(1, 3);
    let first = if random.per_mille(60) { random.below(SCARCE) } else { random.between(SCARCE, PRODUCTS - 4) };
    let item = |nth: u64, quantity: u64| Item {
        sku: sku(first + nth),
        quantity: quantity.cast_signed(),
        unit_price_cents: price_cents(first + nth),
        discount: 0.0,
    };
    let items: Vec<Item> = (0..count).map(|nth| item(nth, random.between(1, 4))).collect();
    let total_cents = items.iter().map(|item| item.quantity * item.unit_price_cents).sum();
    Order {
        order_id,
        customer: format!("customer-{}", random.below(40)),
        placed_on: "2024-05-01".to_owned(),
        ship_to: Address { name: "A. Reader".to_owned(), city: "Ghent".to_owned(), country: "Belgium".to_owned() },
        freight_cents: random.between(300, 4_000).cast_signed(),
        items,
        total_cents,
    }
}

fn sku(number: u64) -> String {
    format!("P-{number:02}")
}

fn price_cents(number: u64) -> i64 {
    (450 + 35 * number).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_takes_every_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let book = OrderBook::new(5, folder.path(), 100, 3);
        let catalogue = (0..PRODUCTS).map(sku).collect();
        for wave in 0..3 {
            let lines = std::fs::read_to_string(book.write_wave(wave).expect("a wave")).expect("a file");
            let orders: Vec<Order> = lines.lines().map(|line| serde_json::from_str(line).expect("an order")).collect();
            assert_eq!(orders.iter().map(|order| order.order_id.clone()).collect::<Vec<_>>(), book.keys(wave));
            for order in &orders {
                assert_eq!(order_rig::orders::check(order, &catalogue), Ok(()));
            }
        }
        assert_eq!(book.keys(0).len() as u64, WAVE + 3);
        let rush = std::fs::read_to_string(book.write_rush(3, 7).expect("a rush")).expect("a file");
        let known: Vec<String> = (0..4).flat_map(|wave| book.keys(wave)).collect();
        assert!(rush.lines().count() == 7 && book.rush_keys(3, 7).iter().all(|key| !known.contains(key)), "{rush}");
    }
}
