//! `cargo xtask book`: builds the guide, and follows the links of what was built.

mod build;
mod links;

pub(crate) use build::book;
