//! `cargo xtask tidy`: the rules of the house that a program can check.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::Args;

use crate::tidy::{RULES_WITH_DEBT, check_workspace, import_graph, write_debt};
use crate::workspace::root;

/// What to do beside checking.
#[derive(Debug, Default, Args)]
pub(crate) struct Tidy {
    /// Writes the known offenders into xtask/tidy-debt.txt, as they are now.
    #[arg(long)]
    write_debt: bool,
    /// Shows the known offenders with their lines: all, or those whose rule or path contains FILTER.
    #[arg(long, value_name = "FILTER", num_args = 0..=1, default_missing_value = "")]
    debt: Option<String>,
    /// Shows what each file below a folder imports there, in layers, circles marked.
    #[arg(long, value_name = "FOLDER")]
    graph: Option<String>,
    /// With --graph: a folder is one node, as a file is.
    #[arg(long, requires = "graph")]
    folders: bool,
}

/// Prints every finding, and fails if there is one. `tasks` are those that documents may name.
pub(crate) fn tidy(options: &Tidy, tasks: &[String]) -> Result<()> {
    if let Some(folder) = &options.graph {
        print!("{}", import_graph(&root(), folder, options.folders)?);
        return Ok(());
    }
    if options.write_debt {
        return rewrite_debt();
    }
    let report = check_workspace(&root(), tasks)?;
    let mut left: BTreeMap<&str, usize> = RULES_WITH_DEBT.iter().map(|rule| (*rule, 0)).collect();
    for known in &report.known {
        let rule = known.offender.as_ref().map_or("", |offender| offender.rule);
        *left.entry(rule).or_default() += 1;
        let is_asked = |filter: &String| rule.contains(filter.as_str()) || known.path.contains(filter.as_str());
        if options.debt.as_ref().is_some_and(is_asked) {
            println!("{known}");
        }
    }
    for finding in &report.findings {
        println!("{finding}");
    }
    for note in &report.notes {
        println!("tidy: {note}");
    }
    for (rule, count) in left {
        println!("tidy: {rule}: {count} known offenders left");
    }
    let errors = report.findings.len();
    if errors > 0 {
        bail!("tidy found {errors} errors");
    }
    println!("tidy: {} files", report.file_count);
    Ok(())
}

/// Writes the debt file, and shows what became of each rule: what is new in it stands in the diff that is reviewed.
fn rewrite_debt() -> Result<()> {
    let (before, now) = write_debt(&root())?;
    for line in now.without(&before) {
        println!("new: {line}");
    }
    for line in before.without(&now) {
        println!("settled: {line}");
    }
    let (before, now) = (before.count_by_rule(), now.count_by_rule());
    for rule in RULES_WITH_DEBT {
        let count = |debt: &BTreeMap<&str, usize>| debt.get(rule).copied().unwrap_or_default();
        println!("tidy: {rule}: {} known offenders, {} before", count(&now), count(&before));
    }
    Ok(())
}
