//! Log events that cannot panic, and have fixed names: docs/log-events.md lists them.
//!
//! Some subscribers panic when their output is gone, such as a closed standard error. That must not end a task of the runtime.

/// Emits an event by one of the macros of `tracing`.
macro_rules! emit {
    ($level:ident, $($event:tt)*) => {
        $crate::log::shielded(|| ::tracing::$level!($($event)*))
    };
}

macro_rules! debug_event {
    ($($event:tt)*) => { $crate::log::emit!(debug, $($event)*) };
}

macro_rules! info_event {
    ($($event:tt)*) => { $crate::log::emit!(info, $($event)*) };
}

macro_rules! warn_event {
    ($($event:tt)*) => { $crate::log::emit!(warn, $($event)*) };
}

macro_rules! error_event {
    ($($event:tt)*) => { $crate::log::emit!(error, $($event)*) };
}

pub(crate) use {debug_event as debug, emit, error_event as error, info_event as info, warn_event as warn};

/// Runs a call of a subscriber. Only the panic hook can report its panic.
pub(crate) fn shielded(call: impl FnOnce()) {
    if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)) {
        // The payload may panic again when it is dropped.
        std::mem::forget(panic);
    }
}

/// Whether a subscriber wants events of the level `DEBUG`.
pub(crate) fn is_verbose() -> bool {
    let mut is_verbose = false;
    shielded(|| is_verbose = tracing::enabled!(tracing::Level::DEBUG));
    is_verbose
}
