//! One concept a file: a long file hides a seam.

use super::finding::Finding;
use super::source::Source;

const LINES_WARNED: usize = 400;
const LINES_MAX: usize = 600;

pub(crate) fn file_length(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    if lines > LINES_MAX {
        let message =
            format!("{lines} lines, and {LINES_MAX} is the limit: one concept a file, find the seam and split it");
        vec![Finding::error(&source.path, lines, message)]
    } else if lines > LINES_WARNED {
        let message = format!("{lines} lines; past {LINES_WARNED} there is mostly a seam");
        vec![Finding::warning(&source.path, lines, message)]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::file_length;
    use crate::tidy::Level;
    use crate::tidy::source::snippet;

    #[test]
    fn long_files_are_found() {
        let levels = |lines: usize| -> Vec<Level> {
            file_length(&snippet("a.rs", &"// line\n".repeat(lines))).iter().map(|finding| finding.level).collect()
        };
        assert_eq!(levels(400), []);
        assert_eq!(levels(401), [Level::Warning]);
        assert_eq!(levels(600), [Level::Warning]);
        assert_eq!(levels(601), [Level::Error]);
    }
}
