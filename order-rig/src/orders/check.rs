use std::collections::HashSet;

use saga_core::Key;

use super::{Order, money::line_total_cents};

/// The names of the products that can be ordered.
#[derive(Debug, Default)]
pub struct Catalogue(HashSet<String>);

impl<S: Into<String>> FromIterator<S> for Catalogue {
    fn from_iter<I: IntoIterator<Item = S>>(skus: I) -> Self {
        Self(skus.into_iter().map(Into::into).collect())
    }
}

/// Whether an order can be taken.
pub fn check(order: &Order, catalogue: &Catalogue) -> Result<(), String> {
    let id = &order.order_id;
    if let Err(error) = Key::new(id) {
        return Err(format!("the order_id cannot be used: {error}"));
    }
    if order.items.is_empty() {
        return Err(format!("order {id} has no items"));
    }
    if order.freight_cents < 0 {
        return Err(format!("order {id} has a freight of {} cents; it cannot be negative", order.freight_cents));
    }
    let mut total = 0_i64;
    for item in &order.items {
        let sku = &item.sku;
        if !catalogue.0.contains(sku) {
            return Err(format!("order {id} asks for the unknown product {sku:?}"));
        }
        if item.quantity <= 0 {
            return Err(format!("order {id} asks for {} of {sku}; the quantity must be positive", item.quantity));
        }
        if item.unit_price_cents < 0 {
            return Err(format!(
                "order {id} has a unit price of {} cents for {sku}; it cannot be negative",
                item.unit_price_cents
            ));
        }
        if !(0.0..=1.0).contains(&item.discount) {
            return Err(format!(
                "order {id} has a discount of {} on {sku}; it must lie between 0 and 1",
                item.discount
            ));
        }
        total = line_total_cents(item).and_then(|line| total.checked_add(line)).ok_or_else(|| {
            format!(
                "order {id} cannot be added up at {sku}: {} x {} cents less {}",
                item.quantity, item.unit_price_cents, item.discount
            )
        })?;
    }
    if total == order.total_cents {
        Ok(())
    } else {
        Err(format!("order {id} says a total of {} cents, but its items add up to {total}", order.total_cents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::{Address, Item};

    fn order() -> Order {
        Order {
            order_id: "A-1".into(),
            customer: "C".into(),
            placed_on: "2024-01-01".into(),
            ship_to: Address { name: "N".into(), city: "C".into(), country: "L".into() },
            freight_cents: 100,
            items: vec![
                Item { sku: "TEA".into(), quantity: 2, unit_price_cents: 350, discount: 0.0 },
                Item { sku: "CUP".into(), quantity: 1, unit_price_cents: 999, discount: 0.1 },
            ],
            total_cents: 700 + 899,
        }
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Order), expected: &str) {
        let mut changed = order();
        change(&mut changed);
        let said = check(&changed, &Catalogue::from_iter(["TEA", "CUP"])).expect_err("it must be refused");
        assert!(said.contains(expected), "said {said:?}, expected {expected:?}");
    }

    #[test]
    fn a_good_order_is_taken() {
        check(&order(), &Catalogue::from_iter(["TEA", "CUP"])).expect("a good order");
    }

    #[test]
    fn each_fault_is_named() {
        refused(|o| o.items.clear(), "order A-1 has no items");
        refused(|o| o.items[0].sku = "POT".into(), "asks for the unknown product \"POT\"");
        refused(|o| o.items[0].quantity = -2, "asks for -2 of TEA; the quantity must be positive");
        refused(|o| o.items[0].quantity = 0, "asks for 0 of TEA");
        refused(|o| o.items[1].unit_price_cents = -1, "unit price of -1 cents for CUP");
        refused(|o| o.items[1].discount = 1.1, "discount of 1.1 on CUP");
        refused(|o| o.items[1].discount = 0.123_456_7, "cannot be added up at CUP");
        refused(|o| o.items[0].quantity = i64::MAX, "cannot be added up at TEA");
        refused(|o| o.freight_cents = -5, "freight of -5 cents");
        refused(|o| o.total_cents += 1, "says a total of 1600 cents, but its items add up to 1599");
        refused(|o| o.order_id = String::new(), "the order_id cannot be used: the key");
        refused(|o| o.order_id = "A\n1".into(), "the order_id cannot be used: the key");
        refused(|o| o.order_id = "A".repeat(121), "the order_id cannot be used: the key");
    }
}
