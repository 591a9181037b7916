//! Log events that cannot panic, and have fixed names: docs/log-events.md lists them.
//!
//! Some subscribers panic when their output is gone, such as a closed standard error. That must not end a task of the runtime, nor the
//! connection of a transport.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Emits an event by one of the macros of `tracing`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_event {
    ($level:ident, $($event:tt)*) => {
        $crate::__private::log::shielded(|| $crate::__private::log::tracing::$level!($($event)*)).unwrap_or_default()
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_debug {
    ($($event:tt)*) => { $crate::__log_event!(debug, $($event)*) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_info {
    ($($event:tt)*) => { $crate::__log_event!(info, $($event)*) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_warn {
    ($($event:tt)*) => { $crate::__log_event!(warn, $($event)*) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_error {
    ($($event:tt)*) => { $crate::__log_event!(error, $($event)*) };
}

#[doc(hidden)]
pub use tracing;

pub(crate) use crate::__log_error as error;
pub use crate::{__log_debug as debug, __log_info as info, __log_warn as warn};

/// Calls a subscriber; `None` if it panics. Only the panic hook can report that panic.
pub fn shielded<T>(call: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => Some(answer),
        Err(panic) => {
            // The payload may panic again when it is dropped.
            std::mem::forget(panic);
            None
        }
    }
}

/// Whether a subscriber wants events of the level `DEBUG`.
pub(crate) fn is_verbose() -> bool {
    shielded(|| tracing::enabled!(tracing::Level::DEBUG)).unwrap_or_default()
}
