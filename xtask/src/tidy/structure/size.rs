//! One concept a file: a long file hides a seam.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::source::Source;

const LINES_MAX: usize = 400;

pub(crate) fn file_length(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    let message =
        || format!("{lines} lines, and {LINES_MAX} is the limit: one concept a file, find the seam and split it");
    (lines > LINES_MAX).then(|| Finding::error(&source.path, lines, message())).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, file_length};
    use crate::tidy::workspace::source::snippet;

    #[test]
    fn a_long_file_is_found() {
        let is_found = |lines: usize| !file_length(&snippet("a.rs", &"// line\n".repeat(lines))).is_empty();
        assert!(!is_found(LINES_MAX));
        assert!(is_found(LINES_MAX + 1));
    }
}
