use super::Item;

const WHOLE: i64 = 10_000;

/// What a line of an order costs: quantity x unit price x (1 - discount), rounded to whole cents, halves to the even one.
///
/// The sum is taken in whole numbers, so it is exact. `None`: it does not fit, or the discount is not a
/// multiple of a hundredth of a percent.
pub(super) fn line_total_cents(item: &Item) -> Option<i64> {
    let gross = i128::from(item.quantity) * i128::from(item.unit_price_cents);
    let numerator = gross.checked_mul(i128::from(WHOLE - discount_parts(item.discount)?))?;
    let whole = i128::from(WHOLE);
    let (cents, rest) = (numerator.div_euclid(whole), numerator.rem_euclid(whole));
    let up = rest * 2 > whole || (rest * 2 == whole && cents % 2 != 0);
    i64::try_from(cents + i128::from(up)).ok()
}

/// The discount in ten-thousandths.
fn discount_parts(discount: f64) -> Option<i64> {
    let parts = discount * 10_000.0;
    let near = parts.round();
    ((0.0..=10_000.0).contains(&near) && (parts - near).abs() < 1e-6).then_some(near as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(quantity: i64, unit_price_cents: i64, discount: f64, expected: Option<i64>) {
        let item = Item { sku: "A".into(), quantity, unit_price_cents, discount };
        assert_eq!(line_total_cents(&item), expected, "{item:?}");
    }

    #[test]
    fn lines_are_rounded_to_whole_cents_and_halves_to_the_even_cent() {
        check(12, 1400, 0.0, Some(16_800));
        check(35, 4240, 0.15, Some(126_140));
        check(1, 10, 0.05, Some(10)); // 9.5
        check(1, 30, 0.05, Some(28)); // 28.5
        check(1, 50, 0.05, Some(48)); // 47.5
        check(1, 1, 1.0, Some(0));
        check(3, 333, 0.0333, Some(966)); // 965.7333
    }

    #[test]
    fn what_cannot_be_summed_exactly_has_no_total() {
        check(i64::MAX, i64::MAX, 0.0, None);
        check(1, 100, 0.123_456, None);
        check(1, 100, 1.5, None);
        check(1, 100, -0.1, None);
    }
}
