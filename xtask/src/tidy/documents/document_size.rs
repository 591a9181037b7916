//! The two documents that everybody reads first stay short; what is longer has a page of its own.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::tree::{TextFile, Tree};

/// The documents with a limit, in bytes.
const LIMITS: [(&str, usize); 2] = [("README.md", 9_216), ("ARCHITECTURE.md", 20_480)];

pub(crate) fn is_limited(tree: &Tree) -> Vec<Finding> {
    tree.markdown.iter().filter_map(check).collect()
}

fn check(file: &TextFile) -> Option<Finding> {
    let (_, limit) = LIMITS.iter().find(|(path, _)| *path == file.path)?;
    let bytes = file.text.len();
    (bytes > *limit).then(|| {
        let message =
            format!("{bytes} bytes, and {limit} is the limit: shorten it, or move a part to a page that it links to");
        Finding::error(&file.path, file.text.lines().count(), message)
    })
}

#[cfg(test)]
mod tests {
    use super::is_limited;
    use crate::tidy::workspace::tree::Tree;

    fn offenders(path: &str, bytes: usize) -> usize {
        is_limited(&Tree::of(&[(path, "a".repeat(bytes).as_str())])).len()
    }

    #[test]
    fn a_long_document_is_found() {
        assert_eq!(offenders("README.md", 9_217), 1);
        assert_eq!(offenders("ARCHITECTURE.md", 20_481), 1);
    }

    #[test]
    fn short_documents_and_other_pages_pass() {
        assert_eq!(offenders("README.md", 9_216), 0);
        assert_eq!(offenders("ARCHITECTURE.md", 20_480), 0);
        assert_eq!(offenders("saga-amqp/README.md", 30_000), 0);
        assert_eq!(offenders("docs/security.md", 30_000), 0);
    }
}
