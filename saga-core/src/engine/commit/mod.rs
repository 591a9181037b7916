//! Recording decisions, and what follows from a commit.

mod after_commit;
mod called_off;
pub(crate) mod changes;
mod committer;
mod hurry;
mod inbound;
mod log_turn;
mod put_back;
mod recorder;
mod related;
mod retry_on_conflict;
mod unreadable;

pub(crate) use self::called_off::{called_off, due_in, is_settling};
pub(crate) use self::committer::Committer;
pub(crate) use self::recorder::Recorder;
pub(crate) use self::related::notify_parent;
pub(crate) use self::retry_on_conflict::{CONFLICTS_MAX, ends, retry_on_conflict};
pub(crate) use self::unreadable::log_unreadable_work;
