//! All rules over the whole workspace.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::debt::Debt;
use super::finding::Finding;
use super::workspace::modules::Crates;
use super::workspace::source::Source;
use super::workspace::tree::Tree;
use super::{
    code::{leftovers, untested_target, unwinding},
    documents::{
        cancel_safety, commands, document_size, glossary, guarantee_list, guarantees, guide, links, log_events,
        module_doc, private_words,
    },
    structure::{
        dependencies, folder_size, impl_home, import_circle, imports, machine_calls, manifests, method_count,
        module_root, never_compiled, purity, size, upward_import, wide_literal,
    },
};
use crate::workspace::cargo;

/// What tidy says about the workspace.
#[derive(Debug)]
pub(crate) struct Report {
    /// What is wrong and not known.
    pub(crate) findings: Vec<Finding>,
    /// What is wrong and stands in the debt file.
    pub(crate) known: Vec<Finding>,
    /// Figures that a rule counted, whether or not it complains.
    pub(crate) notes: Vec<String>,
    pub(crate) file_count: usize,
}

const SOURCE_RULES: [fn(&Source) -> Vec<Finding>; 11] = [
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
    module_doc::opens_the_file,
];

const TREE_RULES: [fn(&Tree) -> Vec<Finding>; 14] = [
    folder_size::is_small,
    document_size::is_limited,
    cancel_safety::is_documented,
    guarantees::each_has_a_test,
    guarantees::each_is_written_down,
    guarantee_list::is_up_to_date,
    guide::is_listed,
    guide::code_is_compiled,
    glossary::has_each_term_once,
    manifests::inherit_from_the_workspace,
    untested_target::has_no_tests,
    links::resolve,
    log_events::are_listed,
    commands::the_two_come_first,
];

const CRATE_RULES: [fn(&Crates<'_>) -> Vec<Finding>; 6] = [
    machine_calls::are_in_the_decider,
    import_circle::no_file_imports_itself,
    upward_import::none_in_the_core,
    impl_home::is_the_folder_of_the_type,
    method_count::is_small,
    wide_literal::is_in_a_constructor,
];

/// The rules whose known offenders the debt file may list.
pub(crate) const RULES_WITH_DEBT: [&str; 9] = [
    machine_calls::RULE,
    impl_home::RULE,
    import_circle::RULE,
    method_count::RULE,
    module_doc::RULE,
    never_compiled::RULE,
    private_words::RULE,
    upward_import::RULE,
    wide_literal::RULE,
];

/// Reads the workspace below `root`, asks every rule, and compares with the debt file. `tasks` are those of `cargo xtask`.
pub(crate) fn check_workspace(root: &Path, tasks: &[String]) -> Result<Report> {
    let tree = Tree::read(root)?;
    let mut findings = ask(&tree);
    findings.extend(commands::exist(&tree, tasks));
    let beneath = dependencies::beneath_the_core(&mut cargo())?;
    findings.extend(dependencies::limit(&beneath));
    findings.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));

    let compared = Debt::read(root)?.compare(findings);
    let notes = vec![format!("saga-core builds with {} crates beneath it", beneath.len())];
    let file_count = tree.sources.len() + tree.markdown.len() + tree.manifests.len();
    Ok(Report { findings: compared.errors, known: compared.known, notes, file_count })
}

/// Writes the debt file anew, and returns the one that was there and the new one.
pub(crate) fn write_debt(root: &Path) -> Result<(Debt, Debt)> {
    let before = Debt::read(root)?;
    let now = Debt::of(&ask(&Tree::read(root)?));
    now.write(root)?;
    Ok((before, now))
}

/// What the rules say that need nothing but the files.
fn ask(tree: &Tree) -> Vec<Finding> {
    let crates = Crates::of(tree);
    let mut findings = Vec::new();
    for source in &tree.sources {
        findings.extend(SOURCE_RULES.iter().flat_map(|rule| rule(source)));
    }
    findings.extend(TREE_RULES.iter().flat_map(|rule| rule(tree)));
    findings.extend(CRATE_RULES.iter().flat_map(|rule| rule(&crates)));
    findings.extend(never_compiled::no_file_is(tree, &crates));
    findings.extend(private_words::are_not_used(tree, &crates));
    findings
}

/// The path and the text of the page of guarantees, for the workspace below `root`.
pub(crate) fn guarantees_page(root: &Path) -> Result<(&'static str, String)> {
    let text = guarantee_list::page(&Tree::read(root)?).context("ARCHITECTURE.md has no guarantees")?;
    Ok((guarantee_list::PAGE, text))
}

#[cfg(test)]
mod tests {
    use super::check_workspace;
    use crate::task_names;
    use crate::workspace::root;

    #[test]
    fn the_workspace_is_tidy() {
        let report = check_workspace(&root(), &task_names()).expect("the workspace can be read");
        assert!(report.file_count > 20, "only {} files were found", report.file_count);
        let errors: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{} errors:\n{}", errors.len(), errors.join("\n"));
    }
}
