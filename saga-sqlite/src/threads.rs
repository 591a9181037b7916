//! Which thread this is.

use std::cell::Cell;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Stranger,
    Writer,
    Reader,
}

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::Stranger) };
}

/// Says what the calling thread is for.
pub(crate) fn be(role: Role) {
    ROLE.set(role);
}

/// Whether the caller runs on a writer thread, where waiting for the writer would last for ever.
pub(crate) fn is_writer() -> bool {
    ROLE.get() == Role::Writer
}

/// Whether the caller runs on a thread of a store.
pub(crate) fn is_own() -> bool {
    ROLE.get() != Role::Stranger
}
