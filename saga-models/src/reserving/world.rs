use std::collections::BTreeSet;

use saga_core::store::Timestamp;
use saga_reservations::{Book, ReservationKey, ResourceName};

use super::client::{Client, Message};

/// How old a message may be when it comes.
pub(super) const AGE_MAX: i64 = 1;

/// The resources. There is one unit of each.
pub(super) const RESOURCES: [&str; 2] = ["bag", "seat"];

/// Everything that is, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// The time of the database.
    pub now: i64,
    /// What the database has.
    pub book: Book,
    /// The clients.
    pub clients: [Client; 2],
    /// What they sent.
    pub messages: BTreeSet<Message>,
    /// The holds that a sweeper has read to end them.
    pub swept: Option<Vec<ReservationKey>>,
    /// What a transaction has read that is not written yet, and the message that it is about.
    pub read: Option<(Book, Message)>,
    /// What must not happen.
    pub broken: Broken,
    /// What has happened just now.
    pub reached: Reached,
}

/// What must not happen, and cannot be seen in a single state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations may occur")]
pub struct Broken {
    /// An operation that was refused changed something.
    pub refused_with_effect: bool,
    /// A token was given out that is not higher than those before.
    pub token_again: bool,
    /// An operation with another token changed something.
    pub by_another_token: bool,
    /// A hold was confirmed after its time, and not under a new token.
    pub confirmed_late: bool,
    /// A request was refused though nothing kept the units from it.
    pub refused_unfairly: bool,
    /// A hold ended before its time, and its client had not given it up.
    pub ended_early: bool,
}

/// What has happened just now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations may occur")]
pub struct Reached {
    /// A hold was confirmed after its time, under a new token.
    pub late: bool,
    /// A release came before its request.
    pub barred: bool,
    /// A request got units of a hold that was over.
    pub taken_over: bool,
    /// A reservation was forgotten.
    pub forgotten: bool,
    /// Units were given back.
    pub returned: bool,
}

impl World {
    pub(super) fn new() -> Self {
        let mut book = Book::default();
        for resource in RESOURCES {
            // It is a name, and there is nothing yet that could be below it.
            _ = ResourceName::new(resource).map(|name| book.set_capacity(&name, 1));
        }
        Self {
            now: 0,
            book,
            clients: Default::default(),
            messages: BTreeSet::new(),
            swept: None,
            read: None,
            broken: Broken::default(),
            reached: Reached::default(),
        }
    }

    /// The key of a client's reservation.
    ///
    /// # Panics
    /// Never: it is a key.
    #[expect(clippy::expect_used, reason = "a letter is a key")]
    pub fn key(client: usize) -> ReservationKey {
        ReservationKey::new(if client == 0 { "a" } else { "b" }).expect("a letter is a key")
    }

    /// A time as the book has it.
    pub(super) fn time(ticks: i64) -> Timestamp {
        Timestamp(ticks * 1_000_000)
    }

    pub(super) fn clock(&self) -> Timestamp {
        Self::time(self.now)
    }
}
