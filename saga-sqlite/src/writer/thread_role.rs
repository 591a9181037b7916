//! The role of the current thread.

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

/// Sets the role of the current thread.
pub(crate) fn set(role: ThreadRole) {
    ROLE.set(role);
}

/// Whether this is a writer thread, where waiting for the writer would be a deadlock.
pub(crate) fn is_writer() -> bool {
    ROLE.get() == ThreadRole::Writer
}

/// Whether this is a thread of a store.
pub(crate) fn is_own() -> bool {
    ROLE.get() != ThreadRole::Other
}
