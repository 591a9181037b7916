//! Which thread this is.

use std::cell::Cell;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadRole {
    Other,
    Writer,
    Reader,
}

thread_local! {
    static ROLE: Cell<ThreadRole> = const { Cell::new(ThreadRole::Other) };
}

/// Says what the calling thread is for.
pub(crate) fn set(role: ThreadRole) {
    ROLE.set(role);
}

/// Whether the caller runs on a writer thread, where waiting for the writer would last for ever.
pub(crate) fn is_writer() -> bool {
    ROLE.get() == ThreadRole::Writer
}

/// Whether the caller runs on a thread of a store.
pub(crate) fn is_own() -> bool {
    ROLE.get() != ThreadRole::Other
}
