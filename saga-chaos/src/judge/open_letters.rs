use std::collections::BTreeMap;

use super::purges::Purges;
use crate::plan::Role;
use crate::world::{DiaryLine, Happened};

/// A purge may have looked before the letter was written, and commit behind that.
const PURGE_UNDER_WAY_MICROS: i64 = 1_000_000;

/// A dead letter that was open for a time, and named an order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenLetter {
    order: String,
    from_micros: i64,
    /// Nothing where it was not decided.
    until_micros: Option<i64>,
}

/// The dead letters that were open, as the operator saw them and decided about them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenLetters(Vec<OpenLetter>);

impl OpenLetters {
    pub(crate) fn of(diary: &[DiaryLine]) -> Self {
        let mut letters: BTreeMap<i64, OpenLetter> = BTreeMap::new();
        for DiaryLine { at_micros, what, .. } in diary {
            match what {
                Happened::LetterOpened { letter, order } => {
                    let (order, from_micros) = (order.clone(), *at_micros);
                    letters.entry(*letter).or_insert(OpenLetter { order, from_micros, until_micros: None });
                }
                Happened::LetterDecided { letter } => {
                    if let Some(letter) = letters.get_mut(letter) {
                        // A decision whose answer was lost was made at the first attempt at the earliest.
                        letter.until_micros.get_or_insert(*at_micros);
                    }
                }
                _ => {}
            }
        }
        Self(letters.into_values().collect())
    }

    /// The orders that were purged while a letter named them.
    pub(crate) fn problems(&self, purges: &Purges) -> Vec<String> {
        let of_orders = || purges.0.iter().filter(|purge| purge.role == Role::Orders);
        let was_open = |letter: &OpenLetter, at: i64| {
            let from = letter.from_micros + PURGE_UNDER_WAY_MICROS;
            from <= at && letter.until_micros.is_none_or(|until| at < until)
        };
        let wrong = self.0.iter().filter_map(|letter| {
            let OpenLetter { order, .. } = letter;
            of_orders()
                .any(|purge| purge.order() == order && was_open(letter, purge.at_micros))
                .then(|| format!("{order} was purged while the operator had not decided about its dead letter"))
        });
        wrong.collect()
    }

    /// What is found when a letter named an order that was purged: the planted mistake.
    pub(crate) fn with_a_letter_about_what_was_purged(purges: &Purges) -> Vec<String> {
        let purge = purges.0.iter().find(|purge| purge.role == Role::Orders);
        let planted = purge.map(|purge| OpenLetter {
            order: purge.order().to_owned(),
            from_micros: purge.at_micros - PURGE_UNDER_WAY_MICROS,
            until_micros: Some(purge.at_micros + 1),
        });
        Self(planted.into_iter().collect()).problems(purges)
    }
}
