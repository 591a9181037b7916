//! The public API of the library crates, one item a line.
//!
//! rustdoc writes what is public as JSON, and the crate `public-api` renders it. What is hidden from the documentation is no
//! part of it.

mod count;
mod listing;
mod rustdoc;

pub(crate) use self::count::count_outside;
pub(crate) use self::listing::{difference, listing};
pub(crate) use self::rustdoc::{Documented, document};
