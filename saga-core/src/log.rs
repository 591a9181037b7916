//! Log events that cannot panic. A subscriber writes to what may be gone, such as a closed standard error, and some of them
//! panic then: an event is not worth the task that tells it.

/// Tells an event by one of the macros of `tracing`.
macro_rules! tell {
    ($level:ident, $($event:tt)*) => {
        $crate::log::shielded(|| ::tracing::$level!($($event)*))
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

macro_rules! error_event {
    ($($event:tt)*) => { $crate::log::tell!(error, $($event)*) };
}

pub(crate) use {debug_event as debug, error_event as error, info_event as info, tell, warn_event as warn};

/// Does what may call a subscriber. Nobody is left to whom its panic could be told, but for the panic hook.
pub(crate) fn shielded(tell: impl FnOnce()) {
    if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(tell)) {
        // What it carries is a text as a rule; another value might panic when it is dropped.
        std::mem::forget(panic);
    }
}

/// Whether somebody listens to events of the level `DEBUG`.
pub(crate) fn is_verbose() -> bool {
    let mut is_verbose = false;
    shielded(|| is_verbose = tracing::enabled!(tracing::Level::DEBUG));
    is_verbose
}
