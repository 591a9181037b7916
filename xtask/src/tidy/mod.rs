//! Tidy: the rules of the house that a program can check, each a small function with its own message.
//!
//! A rule reads a `Tree` and returns findings; it never fails for another reason. A rule about a folder that does
//! not exist is silent; one about a folder that exists is not. Rules about modules and types read `Crates`, which know what
//! a path leads to.
//!
//! What broke a rule when the rule came is listed in `xtask/tidy-debt.txt`, which only becomes shorter.

mod code;
mod debt;
mod documents;
mod finding;
mod graph;
mod run;
mod structure;
mod workspace;

pub(crate) use graph::import_graph;
pub(crate) use run::{RULES_WITH_DEBT, check_workspace, guarantees_page, write_debt};
