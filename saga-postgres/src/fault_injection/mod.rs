//! Fault injection for the tests: mutants that break one rule of the store, and commits whose answer is lost.
//!
//! Without the cargo feature `fault-injection` nothing is injected, and the compiler removes the checks.

#[cfg(not(feature = "fault-injection"))]
mod disabled;
#[cfg(feature = "fault-injection")]
mod enabled;

#[cfg(not(feature = "fault-injection"))]
pub(crate) use self::disabled::{BrokenRule, CommitFault, Mutant};
#[cfg(feature = "fault-injection")]
pub use self::enabled::Mutant;
#[cfg(feature = "fault-injection")]
pub(crate) use self::enabled::{BrokenRule, CommitFault};
