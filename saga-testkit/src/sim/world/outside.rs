use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::fault::{Fault, Hits};
use crate::checker::Op;

/// A service outside, such as a payment gateway. It honours keys as Stripe does: a key that took effect gives the same
/// answer for ever. An undo for something that never arrived bars its key.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// The call that took effect, by its key.
    taken: BTreeMap<String, u64>,
    barred: BTreeSet<String>,
    undone: BTreeSet<String>,
}

/// A call as it arrives.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Its number in the ledger.
    pub(crate) call: u64,
    /// Do or undo.
    pub(crate) op: Op,
    /// The key that came with it.
    pub(crate) key: String,
    /// The key of what it undoes; of a do, its own.
    pub(crate) do_key: String,
    /// Whether the service does not want to do this.
    pub(crate) is_refused: bool,
    /// Whether an undo for something that never arrived bars its key. Not every service does that.
    pub(crate) has_bars: bool,
}

/// What the service says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It is done: by this call now, or by an earlier one with the same key.
    Done {
        /// The call that took effect.
        effect: u64,
    },
    /// It was undone now, or before.
    Undone {
        /// Whether this call did it.
        is_first: bool,
    },
    /// It had never arrived; from now on it cannot.
    Barred,
    /// It had never arrived, and may still do so.
    Nothing,
    /// The service does not do it.
    Rejected,
}

impl Outside {
    /// The call that took effect with that key, if one did.
    pub(crate) fn find(&self, key: &str) -> Option<u64> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).taken.get(key).copied()
    }

    /// Handles a call.
    pub(crate) fn arrive(&self, request: &Request, hits: &Hits) -> Reply {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        match request.op {
            Op::Do => book.arrive(request, hits),
            Op::Undo => book.undo(request, hits),
        }
    }
}

impl Book {
    fn arrive(&mut self, request: &Request, hits: &Hits) -> Reply {
        if let Some(effect) = self.taken.get(&request.key) {
            hits.hit(Fault::KeyHonoured);
            return Reply::Done { effect: *effect };
        }
        if self.barred.contains(&request.key) {
            hits.hit(Fault::BarredRefused);
            return Reply::Rejected;
        }
        if request.is_refused {
            return Reply::Rejected;
        }
        self.taken.insert(request.key.clone(), request.call);
        Reply::Done { effect: request.call }
    }

    fn undo(&mut self, request: &Request, hits: &Hits) -> Reply {
        if !self.taken.contains_key(&request.do_key) {
            if !request.has_bars {
                return Reply::Nothing;
            }
            hits.hit(Fault::UndoBarred);
            self.barred.insert(request.do_key.clone());
            return Reply::Barred;
        }
        Reply::Undone { is_first: self.undone.insert(request.do_key.clone()) }
    }
}
