//! A folder is a component: one with many files hides components that have no folder of their own.

use std::collections::BTreeMap;

use crate::tidy::finding::Finding;
use crate::tidy::workspace::tree::Tree;

const FILES_MAX: usize = 25;

/// One finding for each folder with too many source files of its own. Files of tests beside a file do not count.
pub(crate) fn is_small(tree: &Tree) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| !source.name().ends_with("_tests.rs")) {
        let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        *counts.entry(folder).or_default() += 1;
    }
    counts.retain(|_, files| *files > FILES_MAX);
    counts.into_iter().map(|(folder, files)| finding(folder, files)).collect()
}

fn finding(folder: &str, files: usize) -> Finding {
    let message = format!(
        "{files} source files, and {FILES_MAX} is the limit: find the components among them, and give each a folder"
    );
    Finding::error(folder, 1, message)
}

#[cfg(test)]
mod tests {
    use super::{FILES_MAX, is_small};
    use crate::tidy::workspace::tree::Tree;

    /// The offenders among two folders with `files` files each, one of which lies in a folder of the other.
    fn offenders(files: usize, name: impl Fn(usize) -> String) -> Vec<String> {
        let paths: Vec<String> =
            (0..files).flat_map(|at| [format!("a/src/{}", name(at)), format!("a/src/b/{}", name(at))]).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "//! A file.\n")).collect();
        is_small(&Tree::of(&files)).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_large_folder_is_found() {
        assert_eq!(offenders(FILES_MAX + 1, |at| format!("f{at}.rs")), ["a/src", "a/src/b"]);
    }

    #[test]
    fn small_folders_and_tests_beside_files_pass() {
        assert_eq!(offenders(FILES_MAX, |at| format!("f{at}.rs")), [""; 0]);
        assert_eq!(offenders(FILES_MAX + 1, |at| format!("f{at}_tests.rs")), [""; 0]);
    }
}
