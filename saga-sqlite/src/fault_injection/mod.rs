//! Fault injection for the tests: commits whose answer is lost.
//!
//! Without the cargo feature `fault-injection` nothing is injected, and the compiler removes the check.

#[cfg(not(feature = "fault-injection"))]
mod disabled;
#[cfg(feature = "fault-injection")]
mod enabled;

#[cfg(not(feature = "fault-injection"))]
pub(crate) use self::disabled::CommitFault;
#[cfg(feature = "fault-injection")]
pub(crate) use self::enabled::CommitFault;
