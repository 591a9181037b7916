//! Runs the process of a booking.

mod in_process;
mod orchestrator;
#[cfg(feature = "broker")]
mod process;
#[cfg(feature = "broker")]
mod program;

pub use self::in_process::InProcess;
pub use self::orchestrator::{Orchestrator, start_runtime};
#[cfg(feature = "broker")]
pub use self::process::Process;
#[cfg(feature = "broker")]
pub use self::program::{PROGRAM, run};
