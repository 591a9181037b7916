use super::book::Book;
use super::{
    Ledger, Violation, choices, claims, effects, isolation, liveness, locks, messages, pace, pauses, progress,
    restarts, retention, services, signals, starts, time, undo,
};

/// Judges a ledger: everything in it that breaks a guarantee, in the order of the guarantees.
pub fn check(ledger: &Ledger) -> Vec<Violation> {
    let book = Book::of(ledger);
    let mut found = Vec::new();
    effects::check(&book, &mut found);
    undo::check(&book, &mut found);
    pauses::check(&book, &mut found);
    progress::check(&book, &mut found);
    claims::check(&book, &mut found);
    choices::check(&book, &mut found);
    time::check(&book, &mut found);
    messages::check(&book, &mut found);
    services::check(&book, &mut found);
    signals::check(&book, &mut found);
    starts::check(&book, &mut found);
    restarts::check(&book, &mut found);
    isolation::check(&book, &mut found);
    locks::check(&book, &mut found);
    liveness::check(&book, &mut found);
    pace::check(&book, &mut found);
    retention::check(&book, &mut found);
    found.sort_by_key(|violation: &Violation| violation.guarantee);
    found
}
