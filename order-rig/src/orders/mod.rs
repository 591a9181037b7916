//! What comes in: orders and products as JSON lines, read and checked before anything starts.
//!
//! A line that cannot be used is refused with the file and the line it stands on; the others go on.

mod check;
mod money;
mod object;
mod order;
mod read;
mod source;

pub use check::{Catalogue, check};
pub use order::{Address, Item, Order, Product};
pub use read::{Intake, Numbered, Refusal, read_orders, read_products};
pub use source::Source;
