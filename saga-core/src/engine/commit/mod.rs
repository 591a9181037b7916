//! Recording decisions, and what follows from a commit.

mod after_commit;
mod committer;
mod inbound;
mod put_back;
mod recorder;
mod related;
mod unreadable;

pub(crate) use self::committer::Committer;
pub(crate) use self::recorder::Recorder;
pub(crate) use self::related::notify_parent;
