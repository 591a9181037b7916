//! Running the orders: reading them, starting a saga for each, waiting for the end, and saying what came of it.

mod drive;
mod input;
mod progress;
mod run;
mod summary;

pub use run::run;
pub use summary::Summary;
