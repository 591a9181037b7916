//! The offenders that were there when their rule came: a list that only becomes shorter.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use anyhow::{Context as _, Result};

use super::finding::{Finding, Offender};

pub(crate) const FILE: &str = "xtask/tidy-debt.txt";

const HEAD: &str = "\
# What still breaks a rule of tidy, one offender a line: the rule, the file, the item. The aim is an empty list.
# `cargo xtask tidy` fails on an offender that is not here, and on a line here that is no offender any more.
# Written by `cargo xtask tidy --write-debt`, never by hand. `cargo xtask tidy --debt` shows each with its line and what to do.
";

/// The known offenders, and how often each is there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Debt(BTreeMap<String, usize>);

/// The findings beside the known offenders.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Findings that are errors: new offenders, and lines of the file that are none.
    pub(crate) errors: Vec<Finding>,
    /// Findings that are known.
    pub(crate) known: Vec<Finding>,
}

impl Debt {
    /// Reads the file below `root`; none is an empty one.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        match fs::read_to_string(root.join(FILE)) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {FILE}")),
        }
    }

    /// Writes the file below `root`.
    pub(crate) fn write(&self, root: &Path) -> Result<()> {
        fs::write(root.join(FILE), self.text()).with_context(|| format!("cannot write {FILE}"))
    }

    /// All offenders among the findings.
    pub(crate) fn of(findings: &[Finding]) -> Self {
        let mut debt = Self::default();
        for line in findings.iter().filter_map(line) {
            *debt.0.entry(line).or_default() += 1;
        }
        debt
    }

    /// How many there are of each rule.
    pub(crate) fn count_by_rule(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for (line, count) in &self.0 {
            *counts.entry(line.split(' ').next().unwrap_or_default()).or_default() += count;
        }
        counts
    }

    /// The lines that `self` has more often than `other`.
    pub(crate) fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> + 'a {
        self.0.iter().flat_map(|(line, count)| {
            let more = count.saturating_sub(other.0.get(line).copied().unwrap_or_default());
            std::iter::repeat_n(line.as_str(), more)
        })
    }

    /// Tells the findings apart that are known here, and finds the lines that are no offenders any more.
    pub(crate) fn compare(&self, findings: Vec<Finding>) -> Compared {
        let found = Self::of(&findings);
        let mut left = self.0.clone();
        let mut compared = Compared::default();
        for finding in findings {
            let known = line(&finding).and_then(|line| left.get_mut(&line)).filter(|left| **left > 0);
            match known {
                Some(left) => {
                    *left -= 1;
                    compared.known.push(finding);
                }
                None => compared.errors.push(finding),
            }
        }
        let settled = self.without(&found).map(|line| {
            let message = format!("`{line}` is no offender any more; remove it: run `cargo xtask tidy --write-debt`");
            Finding::error(FILE, 1, message)
        });
        compared.errors.extend(settled);
        compared
    }

    fn parse(text: &str) -> Self {
        let mut debt = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            *debt.0.entry(line.to_owned()).or_default() += 1;
        }
        debt
    }

    fn text(&self) -> String {
        let none = Self::default();
        let mut text = HEAD.to_owned();
        self.without(&none).flat_map(|line| [line, "\n"]).for_each(|part| text.push_str(part));
        text
    }
}

/// The finding's line in the file, if its rule allows debt.
fn line(finding: &Finding) -> Option<String> {
    let Offender { rule, item } = finding.offender.as_ref()?;
    Some(format!("{rule} {} {item}", finding.path))
}

#[cfg(test)]
mod tests {
    use super::Debt;
    use crate::tidy::finding::Finding;

    fn finding(item: &str, line: usize) -> Finding {
        Finding::of_rule("rule", "a.rs", line, item, "is wrong")
    }

    #[test]
    fn what_is_written_is_read_again() {
        let debt = Debt::of(&[finding("B", 2), finding("A", 9), finding("B", 7), Finding::error("a.rs", 1, "no debt")]);
        assert!(debt.text().ends_with("rule a.rs A\nrule a.rs B\nrule a.rs B\n"), "{}", debt.text());
        assert_eq!(Debt::parse(&debt.text()), debt);
        assert_eq!(debt.count_by_rule().into_iter().collect::<Vec<_>>(), [("rule", 3)]);
    }

    #[test]
    fn a_new_offender_is_an_error_and_a_known_one_is_not() {
        let debt = Debt::of(&[finding("A", 1)]);
        let compared = debt.compare(vec![finding("A", 5), finding("A", 6), finding("B", 7)]);
        assert_eq!(compared.known, [finding("A", 5)]);
        assert_eq!(compared.errors, [finding("A", 6), finding("B", 7)]);
    }

    #[test]
    fn a_line_that_is_settled_is_an_error() {
        let debt = Debt::of(&[finding("A", 1), finding("A", 2)]);
        let compared = debt.compare(vec![finding("A", 3)]);
        assert_eq!(compared.errors.len(), 1);
        assert!(compared.errors[0].message.contains("`rule a.rs A` is no offender any more"));
    }

    #[test]
    fn a_rule_without_debt_always_fails() {
        let errors = Debt::default().compare(vec![Finding::error("a.rs", 1, "wrong")]).errors;
        assert_eq!(errors.len(), 1);
    }
}
