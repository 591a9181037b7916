//! The result: the books of the shop, of the services outside and of the runtime, as a ledger for the checker.
//!
//! # What is judged
//!
//! The ledger has what was written down by those to whom it happened. Effects in the database come from a journal that
//! the database keeps itself, committed with the effect; effects outside from the journal of the services outside;
//! starts, kills and stops from this program; the ends from the runtime's store, and from a watcher who asked all the
//! time. So these rules bite: one effect for one step key (G2, G3), records and effects agree (G1, G3), the order of doing
//! and undoing, nothing undone that never may have happened, nothing left that should be undone, nothing done behind its
//! undo (G5), what was started is there, and the decision never changes (G6, G7), nothing spins (G8), nothing is left in
//! the outbox (G4), no work and no saga is forgotten (G8, G11).
//!
//! In a run that purges, the store has no sagas in the end. How they ended is read in the archive, and a journal that each
//! database keeps says what was purged, when, and what the archive had of it at that moment. So these rules bite as well (G13):
//! what is purged has ended, its time is over, it was archived at its last revision, nothing of it is left, no open letter and
//! no unsent message names it; nothing takes effect for it any more; and its key starts nothing again. The operator writes down
//! when a dead letter about an order is open: such an order is not purged meanwhile.
//!
//! A few facts only a simulation has. The epoch of a call is not written down, so the rule about fences does not bite; nor
//! what a step in the database was given to read, nor which steps were rolled back. There are no events in the order saga, so
//! the order of messages (G9) is not judged here, and one tenant only (G12). What a call *left* with is the answer that the
//! service gave, which its caller may not have heard. And once a process was killed, an undo of a call without an answer is
//! always justified.

mod books;
mod ledger;
mod open_letters;
mod planted;
mod purges;
mod remainder;
mod steps;
mod stored;
#[cfg(test)]
mod tests;
mod verdict;

pub(crate) use open_letters::OpenLetters;
pub(crate) use planted::with_a_charge_too_many;
pub(crate) use verdict::{Evidence, Judged, judge};
