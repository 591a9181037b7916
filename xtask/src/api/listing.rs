//! The file that lists a crate's public items, and how two of them differ.

use std::collections::BTreeMap;

use super::count::{inherent_impls, items_of_trait_impls};
use super::rustdoc::Documented;

/// One public item a line, those of a type behind it. How a type implements a trait is one line: that it does. A block of
/// its own methods is none.
pub(crate) fn listing(documented: &Documented) -> String {
    let mut left_out = items_of_trait_impls(&documented.json);
    left_out.extend(inherent_impls(&documented.json));
    let items = documented.api.items().filter(|item| !left_out.contains(&item.id().0));
    items.map(ToString::to_string).flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// The lines that one text has more often than the other: `-` before those of `before`, `+` before those of `after`.
pub(crate) fn difference(before: &str, after: &str) -> Vec<String> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    before.lines().for_each(|line| *counts.entry(line).or_default() -= 1);
    after.lines().for_each(|line| *counts.entry(line).or_default() += 1);
    let different = counts.into_iter().filter(|(_, count)| *count != 0);
    different.map(|(line, count)| format!("{} {line}", if count < 0 { '-' } else { '+' })).collect()
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn only_what_changed_is_shown() {
        assert_eq!(difference("a\nb\nc\n", "a\nc2\nb\n"), ["- c", "+ c2"]);
        assert_eq!(difference("a\n", "a\na\n"), ["+ a"]);
        assert_eq!(difference("a\n", "a\n"), [""; 0]);
    }
}
