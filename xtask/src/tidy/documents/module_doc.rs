//! Each file of the engine says in its first line what it is for.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::source::Source;

pub(crate) const RULE: &str = "module_doc";

const FOLDERS: [&str; 1] = ["saga-core/src/engine/"];

pub(crate) fn opens_the_file(source: &Source) -> Vec<Finding> {
    let is_asked = FOLDERS.iter().any(|folder| source.is_in(folder));
    if !is_asked || source.text.starts_with("//! ") {
        return Vec::new();
    }
    let message = "the file does not open with a `//!` line; say in one sentence what it is for";
    vec![Finding::of_rule(RULE, &source.path, 1, "file", message)]
}

#[cfg(test)]
mod tests {
    use super::opens_the_file;
    use crate::tidy::workspace::source::snippet;

    #[test]
    fn files_without_a_first_line_are_found() {
        let found = |path, text| opens_the_file(&snippet(path, text)).len();
        let path = "saga-core/src/engine/a/b.rs";
        for text in
            ["use a::b;\n", "// Not a doc.\nuse a::b;\n", "\n//! Late.\n", "/// Of the function.\nfn f() {}\n", "//!\n"]
        {
            assert_eq!(found(path, text), 1, "{text}");
        }
        assert_eq!(found(path, "//! The queue.\n\nuse a::b;\n"), 0);
        assert_eq!(found("saga-core/src/saga/a.rs", "use a::b;\n"), 0);
    }
}
