use std::collections::{BTreeMap, BTreeSet};

use super::books::{Books, Line};
use super::ledger::{Call, parse};

/// What is not promised: effects outside of calls that landed after their undo, on a side that does not honour its key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Remainder {
    /// The orders, and the step of each that landed so, with the line of the journal in which it did.
    pub(crate) landed: BTreeMap<(String, String), usize>,
}

impl Remainder {
    /// What the services outside wrote down of it.
    pub(crate) fn of(books: &Books) -> Self {
        let mut undone = BTreeSet::new();
        let mut landed = BTreeMap::new();
        for (place, Line { key, event, .. }) in books.outside.iter().enumerate() {
            let Some(Call { order, step, is_undo }) = parse(key) else { continue };
            let name = (order.to_owned(), step.to_owned());
            match (is_undo, event.as_str()) {
                (true, "undone" | "barred") => {
                    undone.insert(name);
                }
                (false, "took") if undone.contains(&name) => {
                    landed.entry(name).or_insert(place);
                }
                _ => {}
            }
        }
        Self { landed }
    }

    /// The books as they would be without it.
    pub(crate) fn taken_out_of(&self, books: &Books) -> Books {
        let mut books = books.clone();
        for ((order, step), place) in &self.landed {
            let line = &mut books.outside[*place];
            "refused".clone_into(&mut line.event);
            let number = line.number.take();
            let key = format!("{order}:{step}");
            books.done.retain(|done| !(done.key == key && Some(done.number) == number));
        }
        books
    }

    pub(crate) fn orders(&self) -> BTreeSet<&str> {
        self.landed.keys().map(|(order, _)| order.as_str()).collect()
    }
}
