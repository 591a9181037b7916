//! One import between two files.

/// A file that names an item, or a whole module, of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import<'a> {
    pub(crate) from: &'a str,
    pub(crate) line: usize,
    pub(crate) to: &'a str,
    /// The item, as its own module calls it.
    pub(crate) item: String,
    /// A `pub use` hands on a name and needs nothing.
    pub(crate) is_re_export: bool,
}
