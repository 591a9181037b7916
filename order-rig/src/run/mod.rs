//! Running the orders: reading them, starting a saga for each, waiting for the ends, and printing the summary.

mod command;
mod counter;
mod drive;
mod input;
mod outage;
mod progress;
mod summary;

pub use command::run;
pub(crate) use counter::Counter;
pub(crate) use input::Input;
pub use summary::Summary;
