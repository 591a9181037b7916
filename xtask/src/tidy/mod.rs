//! Tidy: the rules of the house that a program can check, each a small function with its own message.
//!
//! A rule reads a `Tree` and returns findings; it never fails for another reason. A rule about a folder that does
//! not exist is silent; one about a folder that exists is not. Rules about modules and types read `Crates`, which know what
//! a path leads to.
//!
//! What broke a rule when the rule came is listed in `xtask/tidy-debt.txt`, which only becomes shorter.

mod cancel_safety;
mod commands;
mod debt;
mod dependencies;
mod finding;
mod glossary;
mod graph;
mod guarantee;
mod guarantee_list;
mod guarantees;
mod guide;
mod impl_home;
mod impls;
mod import_circle;
mod imports;
mod leftovers;
mod links;
mod log_events;
mod machine_calls;
mod manifests;
mod markdown;
mod method_count;
mod module_doc;
mod module_root;
mod modules;
mod never_compiled;
mod private_words;
mod prose;
mod purity;
mod run;
mod size;
mod source;
mod syntax;
mod tokens;
mod tree;
mod untested_target;
mod unwinding;
mod upward_import;
mod wide_literal;

pub(crate) use finding::Level;
pub(crate) use graph::import_graph;
pub(crate) use run::{RULES_WITH_DEBT, check_workspace, guarantees_page, write_debt};
