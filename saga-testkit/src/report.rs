//! Which clauses of a contract are covered, and what became of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::check::Verdict;

/// The clauses that stand in the text of a contract, in order: every `` `S-..` `` or `` `T-..` `` that begins a list item.
/// A number that is used for two clauses is in it twice.
pub fn clauses_in(source: &str) -> Vec<String> {
    let items = source.lines().filter_map(|line| line.trim_start().strip_prefix("/// - `"));
    let ids = items.filter_map(|item| item.split('`').next());
    ids.filter(|id| id.starts_with("S-") || id.starts_with("T-")).map(str::to_owned).collect()
}

/// What became of each check, by clause.
#[derive(Debug, Default)]
pub struct Report {
    checks: BTreeMap<String, Fate>,
    clauses: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    NotRun,
    Skipped(String),
    NotApplicable(&'static str),
    Passed,
    Failed,
}

impl Report {
    /// A check that is going to run, or is skipped for a reason.
    pub(crate) fn expect(&mut self, clauses: &[&str], id: &str, skipped: Option<&str>) {
        let fate = skipped.map_or(Fate::NotRun, |reason| Fate::Skipped(reason.into()));
        self.checks.insert(id.into(), fate);
        for clause in clauses {
            self.clauses.entry((*clause).into()).or_default().push(id.into());
        }
    }

    /// A check has ended: with a verdict, unless it failed.
    pub(crate) fn note(&mut self, id: &str, verdict: Option<Verdict>) {
        let fate = match verdict {
            Some(Verdict::Kept) => Fate::Passed,
            Some(Verdict::NotApplicable(reason)) => Fate::NotApplicable(reason),
            None => Fate::Failed,
        };
        self.checks.insert(id.into(), fate);
    }

    /// The checks that said nothing of the backend, each with the reason.
    pub(crate) fn not_applicable(&self) -> Vec<(&str, &str)> {
        let reason = |fate: &Fate| if let Fate::NotApplicable(reason) = fate { Some(*reason) } else { None };
        self.checks.iter().filter_map(|(id, fate)| Some((&**id, reason(fate)?))).collect()
    }
}

/// A table to paste into a README: the clause, its checks, and what became of them.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| clause | checks | result |\n|---|---|---|")?;
        for (clause, ids) in &self.clauses {
            let fates: Vec<&Fate> = ids.iter().filter_map(|id| self.checks.get(id)).collect();
            writeln!(f, "| {clause} | {} | {} |", ids.len(), in_words(&fates))?;
        }
        Ok(())
    }
}

fn in_words(fates: &[&Fate]) -> String {
    let count = |wanted: &Fate| fates.iter().filter(|fate| **fate == wanted).count();
    let mut words = Vec::new();
    for (fate, word) in [(Fate::Passed, "kept"), (Fate::Failed, "broken"), (Fate::NotRun, "not run")] {
        match count(&fate) {
            0 => {}
            all if all == fates.len() => words.push(word.to_owned()),
            some => words.push(format!("{word} in {some}")),
        }
    }
    let reasons = fates.iter().filter_map(|fate| match fate {
        Fate::Skipped(reason) => Some(format!("skipped, because {reason}")),
        Fate::NotApplicable(reason) => Some(format!("not applicable, because {reason}")),
        _ => None,
    });
    words.extend(reasons.collect::<BTreeSet<_>>());
    words.join(", ")
}
