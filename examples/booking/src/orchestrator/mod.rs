//! Runs the process of a booking.

mod in_process;
mod orchestrator;
#[cfg(feature = "rabbitmq")]
mod process;
#[cfg(feature = "rabbitmq")]
mod program;

pub use self::in_process::InProcess;
pub use self::orchestrator::{Orchestrator, start_runtime};
#[cfg(feature = "rabbitmq")]
pub use self::process::Process;
#[cfg(feature = "rabbitmq")]
pub use self::program::{PROGRAM, run};
