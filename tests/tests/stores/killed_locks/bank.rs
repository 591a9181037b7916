//! A bank outside, which notes each call in a file: a process that is killed has written a line or has not.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of the bank.
#[derive(Clone)]
pub(super) struct Bank(Arc<PathBuf>);

impl Bank {
    pub(super) fn at(file: &Path) -> Self {
        Self(Arc::new(file.to_owned()))
    }

    /// A call for an account begins or ends.
    pub(super) fn note(&self, what: &str, account: u32, token: u64, key: &str) {
        let mut file = std::fs::File::options().create(true).append(true).open(&*self.0).unwrap();
        // One write: lines of two processes do not mix.
        file.write_all(format!("{what} {account} {token} {key}\n").as_bytes()).unwrap();
    }

    /// How many calls have begun.
    pub(super) fn calls(&self) -> usize {
        let text = std::fs::read_to_string(&*self.0).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("begin")).count()
    }

    /// How many calls began, and what is wrong with them.
    pub(super) fn judge(&self) -> (usize, Vec<String>) {
        let text = std::fs::read_to_string(&*self.0).unwrap();
        let (mut accounts, mut calls, mut wrong) = (BTreeMap::<&str, (u64, &str)>::new(), 0, Vec::new());
        for line in text.lines() {
            let [what, account, token, key] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let token: u64 = token.parse().unwrap();
            let (highest, last) = accounts.entry(account).or_insert((token, key));
            if what == "begin" {
                calls += 1;
                if token < *highest || (token == *highest && key != *last) {
                    wrong.push(format!("`{line}` after the token {highest} of {last}"));
                }
                (*highest, *last) = (token, key);
            } else if key != *last {
                wrong.push(format!("`{line}` after {last} had begun"));
            }
        }
        (calls, wrong)
    }
}
