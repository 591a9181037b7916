//! The workspace as the rules see it: its files, and what a path of a module leads to.

pub(super) mod impls;
pub(super) mod markdown;
pub(super) mod modules;
pub(super) mod prose;
pub(super) mod source;
pub(super) mod syntax;
pub(super) mod tokens;
pub(super) mod tree;
