//! Log events that cannot panic. Some subscribers panic when their output is gone, such as a closed standard error. That must not
//! cost the connection that the event is about.

use std::panic::{AssertUnwindSafe, catch_unwind};

macro_rules! tell {
    ($level:ident, $($event:tt)*) => {
        $crate::log::shielded(|| ::tracing::$level!($($event)*)).unwrap_or_default()
    };
}

macro_rules! debug_event {
    ($($event:tt)*) => { $crate::log::tell!(debug, $($event)*) };
}

macro_rules! info_event {
    ($($event:tt)*) => { $crate::log::tell!(info, $($event)*) };
}

macro_rules! warn_event {
    ($($event:tt)*) => { $crate::log::tell!(warn, $($event)*) };
}

pub(crate) use {debug_event as debug, info_event as info, tell, warn_event as warn};

/// Calls a subscriber; `None` if it panics. Only the panic hook can report that panic.
pub(crate) fn shielded<T>(call: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => Some(answer),
        Err(panic) => {
            // What it carries is a text as a rule; another value might panic when it is dropped.
            std::mem::forget(panic);
            None
        }
    }
}
