use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Transaction, params};

/// One call: which it is among those under its key, from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) path: &'a str,
    pub(super) key: &'a str,
    pub(super) nth: u32,
}

/// What became of a call, in the order in which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// It came in.
    Called,
    /// It is kept waiting before anything is done about it.
    Held,
    /// What it asks for was done now, and got this number.
    Took(i64),
    /// What was done under another key was taken back now. The caller named it by this number, where it named it.
    Undone(Option<i64>),
    /// Nothing was ever done under that other key, which is barred now.
    Barred(Option<i64>),
    /// It was told no for the first time.
    Refused,
    /// It changed nothing: its key had been answered before, or nothing was left to take back.
    Again,
    /// An answer left with this status.
    Answered(u16),
}

impl Event {
    fn name(self) -> &'static str {
        match self {
            Self::Called => "called",
            Self::Held => "held",
            Self::Took(_) => "took",
            Self::Undone(_) => "undone",
            Self::Barred(_) => "barred",
            Self::Refused => "refused",
            Self::Again => "again",
            Self::Answered(_) => "answered",
        }
    }

    fn number(self) -> Option<i64> {
        match self {
            Self::Took(number) => Some(number),
            Self::Undone(number) | Self::Barred(number) => number,
            Self::Answered(status) => Some(status.into()),
            Self::Called | Self::Held | Self::Refused | Self::Again => None,
        }
    }
}

/// Writes it down, within the transaction that does it.
pub(super) fn note(tx: &Transaction<'_>, call: Call<'_>, event: Event) -> rusqlite::Result<()> {
    let Call { path, key, nth } = call;
    tx.prepare_cached("INSERT INTO journal (at_micros, path, key, nth, event, number) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![now_micros(), path, key, nth, event.name(), event.number()])
        .map(drop)
}

#[expect(clippy::disallowed_methods, reason = "a service in another house has a clock of its own")]
fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
