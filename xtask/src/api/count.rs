//! How many items a crate promises to keep.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Types, traits, functions with methods, and constants. Fields and variants belong to their type, and what implements a trait
/// is that trait's.
const COUNTED: [(&str, &str); 10] = [
    ("struct", "types"),
    ("enum", "types"),
    ("union", "types"),
    ("type_alias", "types"),
    ("trait", "traits"),
    ("trait_alias", "traits"),
    ("function", "functions"),
    ("constant", "constants"),
    ("static", "constants"),
    ("assoc_const", "constants"),
];

/// Counts the public items by kind. An item that is public by several paths counts once, and not at all if each of its paths
/// begins with one of `doors`. What a trait provides counts with the trait, not with the types that have it. `items` are the items
/// as they are rendered, by their ids in the JSON of rustdoc.
pub(crate) fn count_outside<'a>(
    items: impl Iterator<Item = (u32, String)>,
    json: &'a Value,
    doors: &[String],
) -> BTreeMap<&'a str, usize> {
    let of_traits = items_of_trait_impls(json);
    let declared = items_of_traits(json);
    let is_outside = |text: &str| {
        let path = text.split_whitespace().find(|word| word.contains("::")).unwrap_or_default();
        !doors.iter().any(|door| path.starts_with(door.as_str()))
    };
    let outside: BTreeSet<u32> = items.filter(|(_, text)| is_outside(text)).map(|(id, _)| id).collect();
    let mut counts = BTreeMap::new();
    let is_of_outside = |id: &&u32| declared.get(id).is_none_or(|of| outside.contains(of));
    for id in outside.difference(&of_traits).filter(is_of_outside) {
        let kind = json["index"][id.to_string()]["inner"].as_object().and_then(|inner| inner.keys().next());
        let counted = COUNTED.iter().find(|(known, _)| kind.is_some_and(|kind| kind == known));
        if let Some((_, name)) = counted {
            *counts.entry(*name).or_default() += 1;
        }
    }
    counts
}

/// The functions and constants by which types implement traits.
pub(super) fn items_of_trait_impls(json: &Value) -> BTreeSet<u32> {
    let blocks = impls(json).map(|(_, block)| block).filter(|block| block["trait"].is_object());
    let ids = blocks.filter_map(|block| block["items"].as_array()).flatten();
    ids.filter_map(Value::as_u64).filter_map(|id| u32::try_from(id).ok()).collect()
}

/// The functions and constants that traits declare, and the trait of each.
fn items_of_traits(json: &Value) -> BTreeMap<u32, u32> {
    let items = json["index"].as_object().into_iter().flatten();
    let traits =
        items.filter_map(|(id, item)| Some((id.parse().ok()?, item["inner"].get("trait")?["items"].as_array()?)));
    let declared = traits.flat_map(|(of, items): (u32, _)| items.iter().map(move |item| (item.as_u64(), of)));
    declared.filter_map(|(id, of)| Some((u32::try_from(id?).ok()?, of))).collect()
}

/// The blocks `impl` that are of no trait.
pub(super) fn inherent_impls(json: &Value) -> impl Iterator<Item = u32> {
    impls(json).filter(|(_, block)| block["trait"].is_null()).filter_map(|(id, _)| id.parse().ok())
}

fn impls(json: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let items = json["index"].as_object().into_iter().flatten();
    items.filter_map(|(id, item)| Some((id, item["inner"].get("impl")?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{count_outside, inherent_impls};

    #[test]
    fn an_item_counts_once_and_outside_the_doors_only() {
        let json = json!({ "index": {
            "1": { "inner": { "struct": {} } },
            "2": { "inner": { "function": {} } },
            "3": { "inner": { "function": {} } },
            "4": { "inner": { "struct_field": {} } },
            "5": { "inner": { "impl": { "trait": { "path": "Display" }, "items": [3] } } },
            "6": { "inner": { "impl": { "trait": null, "items": [2] } } },
            "7": { "inner": { "trait": { "items": [10] } } },
            "8": { "inner": { "struct": {} } },
            "9": { "inner": { "assoc_const": {} } },
            "10": { "inner": { "function": {} } },
        } });
        let items = [
            (1, "pub struct a::Key"),
            (1, "pub struct a::key::Key"),
            (2, "pub const fn a::Key::new(a::store::Row) -> Self"),
            (3, "pub fn a::Key::fmt(&self)"),
            (4, "pub a::Row::id: u64"),
            (5, "impl core::fmt::Display for a::Key"),
            (7, "pub trait a::store::Store: core::marker::Send"),
            (10, "pub fn a::store::Store::is_empty(&self) -> bool"),
            (10, "pub fn a::Key::is_empty(&self) -> bool"),
            (8, "pub struct a::store::Row"),
            (8, "pub struct a::Row"),
            (9, "pub const a::store::Row::MAX: u64"),
        ];
        let items = || items.iter().map(|(id, text)| (*id, (*text).to_owned()));
        let counts = count_outside(items(), &json, &["a::store::".to_owned()]);
        assert_eq!(counts.into_iter().collect::<Vec<_>>(), [("functions", 1), ("types", 2)]);
        let all: usize = count_outside(items(), &json, &[]).into_values().sum();
        assert_eq!(all, 6);
        assert_eq!(inherent_impls(&json).collect::<Vec<_>>(), [6]);
    }
}
