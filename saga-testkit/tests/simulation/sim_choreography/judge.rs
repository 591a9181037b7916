//! What must hold of the books, whatever was published and in whatever order. It knows the wiring, and nothing of the
//! engine.

use std::collections::{BTreeMap, BTreeSet};

use saga_core::engine::Became;

use super::schedule::KEYS;

/// What stood in the end of a schedule.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Book {
    /// How often each thing was done, by what and for whom.
    pub(crate) effects: BTreeMap<(String, String), i64>,
    /// The events that the broker accepted, by key and name.
    pub(crate) told: BTreeSet<(String, String)>,
    /// The last report of each step, by step and key.
    pub(crate) reported: BTreeMap<(String, String), Became>,
    pub(crate) crashes: u64,
    pub(crate) doubled: u64,
    pub(crate) late: u64,
    pub(crate) failed_commits: u64,
    pub(crate) unfinished: Option<String>,
    pub(crate) panics: Vec<String>,
    pub(crate) trace: u64,
}

/// A step: what does it and what undoes it, which event asks for it and which ones take it back, what it tells.
struct Step {
    service: &'static str,
    does: &'static str,
    undoes: &'static str,
    asked_by: &'static str,
    taken_back_by: &'static [&'static str],
    tells: Option<&'static str>,
    refuses: Option<&'static str>,
}

const STEPS: [Step; 3] = [
    Step {
        service: "stock",
        does: "reserve",
        undoes: "unreserve",
        asked_by: "order-placed",
        taken_back_by: &["card-declined", "order-expired"],
        tells: Some("stock-reserved"),
        refuses: Some("stock-rejected"),
    },
    Step {
        service: "payments",
        does: "charge",
        undoes: "refund",
        asked_by: "order-placed",
        taken_back_by: &["stock-rejected", "order-expired"],
        tells: Some("card-charged"),
        refuses: Some("card-declined"),
    },
    Step {
        service: "shipping",
        does: "pack",
        undoes: "unpack",
        asked_by: "stock-reserved",
        taken_back_by: &["stock-rejected", "card-declined", "order-expired"],
        tells: None,
        refuses: None,
    },
];

impl Book {
    /// Adds up what several schedules had in them.
    pub(crate) fn add(&mut self, other: &Self) {
        for (what, times) in &other.effects {
            *self.effects.entry(what.clone()).or_default() += times;
        }
        // Each schedule has sagas of its own.
        let own = self.told.len();
        self.told.extend(other.told.iter().map(|(key, event)| (format!("{own} {key}"), event.clone())));
        self.reported.extend(
            other.reported.iter().map(|((step, key), became)| ((step.clone(), format!("{own} {key}")), *became)),
        );
        self.crashes += other.crashes;
        self.doubled += other.doubled;
        self.late += other.late;
        self.failed_commits += other.failed_commits;
    }

    pub(crate) fn effects_of(&self, what: &str) -> i64 {
        self.effects.iter().filter(|((effect, _), _)| effect == what).map(|(_, times)| times).sum()
    }

    pub(crate) fn told(&self, event: &str) -> usize {
        self.told.iter().filter(|(_, told)| told == event).count()
    }

    pub(crate) fn barred(&self) -> usize {
        self.reported.values().filter(|became| **became == Became::Tombstoned).count()
    }

    fn times(&self, what: &str, key: &str) -> i64 {
        self.effects.get(&(what.to_owned(), key.to_owned())).copied().unwrap_or(0)
    }

    fn is_told(&self, event: &str, key: &str) -> bool {
        self.told.contains(&(key.to_owned(), event.to_owned()))
    }
}

/// What is wrong, each in a sentence.
pub(crate) fn judge(book: &Book) -> Vec<String> {
    let mut wrong: Vec<String> =
        book.unfinished.iter().map(|why| format!("it did not come to an end: {why}")).collect();
    wrong.extend(book.panics.iter().map(|panic| format!("a task panicked: {panic}")));
    for key in KEYS {
        for step in &STEPS {
            wrong.extend(judge_step(book, step, key).map(|what| format!("{} of {key}: {what}", step.does)));
        }
        wrong.extend(judge_pivot(book, key).map(|what| format!("ship of {key}: {what}")));
    }
    wrong
}

fn judge_step(book: &Book, step: &Step, key: &str) -> Option<String> {
    let (done, undone) = (book.times(step.does, key), book.times(step.undoes, key));
    let is_asked = book.is_told(step.asked_by, key);
    let is_taken_back = step.taken_back_by.iter().any(|event| book.is_told(event, key));
    let is_refused = step.refuses.is_some_and(|event| book.is_told(event, key));
    let reported = book.reported.get(&(format!("{}/{}", step.service, step.does), key.to_owned())).copied();
    let expected = match (done, undone) {
        _ if !(0..=1).contains(&done) || undone > done => return Some(format!("done {done}, undone {undone} times")),
        (1, 0) if is_taken_back => return Some("it stands though it was taken back".to_owned()),
        (1, 1) if !is_taken_back => return Some("it was undone though nobody took it back".to_owned()),
        (1, _) if !is_asked => return Some("it was done though nobody asked for it".to_owned()),
        (1, _) if step.tells.is_some_and(|event| !book.is_told(event, key)) => {
            return Some("nobody was told of its success".to_owned());
        }
        (0, _) if is_asked && !is_taken_back && !is_refused => {
            return Some("it was asked for, and nothing came of it".to_owned());
        }
        (1, 0) => &[Became::Done][..],
        (1, _) => &[Became::Undone],
        _ if is_asked || is_taken_back => &[Became::Tombstoned, Became::Rejected],
        _ => return reported.map(|became| format!("it is reported as {}, and nobody asked", became.as_str())),
    };
    (!reported.is_some_and(|became| expected.contains(&became)))
        .then(|| format!("it is reported as {reported:?}, which should be one of {expected:?}"))
}

/// What was shipped is not over, and what is over is not shipped.
fn judge_pivot(book: &Book, key: &str) -> Option<String> {
    let shipped = book.times("ship", key);
    let is_packed = book.times("pack", key) > book.times("unpack", key);
    let is_barred = ["stock-rejected", "card-declined", "order-expired"].iter().any(|event| book.is_told(event, key));
    match shipped {
        0 if book.is_told("order-shipped", key) => Some("it is told, but was not done".to_owned()),
        0 if is_packed && !is_barred && book.is_told("card-charged", key) => {
            Some("everything was there for it, and nothing came of it".to_owned())
        }
        1 if book.is_told("order-expired", key) => Some("it was done behind its deadline".to_owned()),
        1 if !book.is_told("order-shipped", key) => Some("nobody was told of it".to_owned()),
        1 if book.times("pack", key) == 0 => Some("it was done before it was packed".to_owned()),
        0 | 1 => None,
        times => Some(format!("it was done {times} times")),
    }
}
