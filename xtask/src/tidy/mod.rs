//! Tidy: the rules of the house that a program can check, each a small function with its own message.
//!
//! A rule reads a `Tree` and returns findings; it never fails for another reason. A rule about a folder that does
//! not exist is silent; one about a folder that exists is not.

mod cancel_safety;
mod commands;
mod dependencies;
mod finding;
mod glossary;
mod guarantee_list;
mod guarantees;
mod guide;
mod imports;
mod leftovers;
mod links;
mod manifests;
mod markdown;
mod module_root;
mod purity;
mod run;
mod size;
mod source;
mod tokens;
mod tree;
mod unwinding;

pub(crate) use finding::Level;
pub(crate) use run::{check_workspace, guarantees_page};
