//! All rules over the whole workspace.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;

use super::finding::Finding;
use super::source::Source;
use super::tree::Tree;
use super::{
    cancel_safety, commands, dependencies, glossary, guarantee_list, guarantees, guide, imports, leftovers, links,
    manifests, module_root, purity, size, unwinding,
};
use crate::Arguments;
use crate::workspace::cargo;

/// What tidy says about the workspace.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) findings: Vec<Finding>,
    /// Figures that a rule counted, whether or not it complains.
    pub(crate) notes: Vec<String>,
    pub(crate) file_count: usize,
}

const SOURCE_RULES: [fn(&Source) -> Vec<Finding>; 10] = [
    size::file_length,
    module_root::only_lists,
    imports::no_backend_in_core,
    imports::no_engine_below_it,
    purity::machine_is_pure,
    leftovers::nothing_unfinished,
    leftovers::no_test_is_ignored,
    leftovers::no_test_sleeps,
    unwinding::no_moment_overflows,
    unwinding::no_event_panics,
];

const TREE_RULES: [fn(&Tree) -> Vec<Finding>; 10] = [
    cancel_safety::is_documented,
    guarantees::each_has_a_test,
    guarantees::each_is_written_down,
    guarantee_list::is_up_to_date,
    guide::is_listed,
    guide::code_is_compiled,
    glossary::has_each_term_once,
    manifests::inherit_from_the_workspace,
    links::resolve,
    commands::the_two_come_first,
];

/// Reads the workspace below `root` and asks every rule.
pub(crate) fn check_workspace(root: &Path) -> Result<Report> {
    let tree = Tree::read(root)?;
    let mut findings = Vec::new();
    for source in &tree.sources {
        findings.extend(SOURCE_RULES.iter().flat_map(|rule| rule(source)));
    }
    findings.extend(TREE_RULES.iter().flat_map(|rule| rule(&tree)));
    findings.extend(commands::exist(&tree, &tasks()));

    let beneath = dependencies::beneath_the_core(&mut cargo())?;
    findings.extend(dependencies::limit(&beneath));
    findings.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    let notes = vec![format!("saga-core builds with {} crates beneath it", beneath.len())];
    Ok(Report { findings, notes, file_count: tree.sources.len() + tree.markdown.len() + tree.manifests.len() })
}

/// The path and the text of the page of guarantees, for the workspace below `root`.
pub(crate) fn guarantees_page(root: &Path) -> Result<(&'static str, String)> {
    let text = guarantee_list::page(&Tree::read(root)?).context("ARCHITECTURE.md has no guarantees")?;
    Ok((guarantee_list::PAGE, text))
}

fn tasks() -> Vec<String> {
    Arguments::command().get_subcommands().map(|task| task.get_name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::check_workspace;
    use crate::tidy::Level;
    use crate::workspace::root;

    #[test]
    fn the_workspace_is_tidy() {
        let report = check_workspace(&root()).expect("the workspace can be read");
        assert!(report.file_count > 20, "only {} files were found", report.file_count);
        let errors: Vec<String> =
            report.findings.iter().filter(|finding| finding.level == Level::Error).map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{} errors:\n{}", errors.len(), errors.join("\n"));
    }
}
