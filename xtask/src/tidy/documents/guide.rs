//! The guide is whole: its table of contents lists every chapter, and every Rust code block is compiled.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::markdown::{fences, links};
use crate::tidy::workspace::tree::{TextFile, Tree};

const CHAPTERS: &str = "docs/guide/src/";
const SUMMARY: &str = "docs/guide/src/SUMMARY.md";
/// Where the chapters are included as documentation tests.
const DOCTESTS: &str = "tests/src/guide.rs";

/// Pages whose Rust code readers copy.
const TESTED: [&str; 17] = [
    "README.md",
    "docs/cdc.md",
    "docs/security.md",
    "saga-core/docs/tutorial.md",
    "saga-core/README.md",
    "saga-sqlite/README.md",
    "saga-sql/README.md",
    "saga-postgres/README.md",
    "saga-amqp/README.md",
    "saga-kafka/README.md",
    "saga-sqs/README.md",
    "saga-http/README.md",
    "saga-reservations/README.md",
    "saga-redis/README.md",
    "saga-macros/README.md",
    "saga-testkit/README.md",
    "saga-cli/README.md",
];

/// Each chapter has one line in `SUMMARY.md`.
pub(crate) fn is_listed(tree: &Tree) -> Vec<Finding> {
    let Some(summary) = tree.markdown.iter().find(|file| file.path == SUMMARY) else { return Vec::new() };
    let listed: Vec<String> =
        links(&summary.text).into_iter().map(|link| format!("{CHAPTERS}{}", link.target)).collect();
    let count = |path: &str| listed.iter().filter(|listed| *listed == path).count();
    let complaint = |chapter: &TextFile| match count(&chapter.path) {
        0 => Some(Finding::error(&chapter.path, 1, format!("the chapter is missing in {SUMMARY}"))),
        1 => None,
        _ => Some(Finding::error(SUMMARY, 1, format!("{} is listed more than once", chapter.path))),
    };
    chapters(tree).filter_map(complaint).collect()
}

/// Each chapter is included in the documentation tests, and no page hides its code from them.
pub(crate) fn code_is_compiled(tree: &Tree) -> Vec<Finding> {
    let tests = tree.sources.iter().find(|source| source.path == DOCTESTS).map_or("", |source| &source.text);
    let mut findings = Vec::new();
    for chapter in chapters(tree) {
        let included = format!("\"../../{}\"", chapter.path);
        let has_code = fences(&chapter.text).iter().any(|(_, words)| words.first() == Some(&"rust"));
        if has_code && !tests.contains(&included) {
            let message = format!("no test compiles the code of this chapter: add {included} to {DOCTESTS}");
            findings.push(Finding::error(&chapter.path, 1, message));
        }
    }
    let tested = tree.markdown.iter().filter(|file| TESTED.contains(&file.path.as_str()));
    for page in chapters(tree).chain(tested) {
        for (line, words) in fences(&page.text) {
            if words.is_empty() {
                findings.push(Finding::error(&page.path, line, "say the language of this code block; `text` if none"));
            }
            if words.contains(&"ignore") {
                findings.push(Finding::error(&page.path, line, "an ignored code block is never compiled"));
            }
        }
    }
    findings
}

fn chapters(tree: &Tree) -> impl Iterator<Item = &TextFile> {
    tree.markdown.iter().filter(|file| file.path.starts_with(CHAPTERS) && file.path != SUMMARY)
}

#[cfg(test)]
mod tests {
    use super::{code_is_compiled, is_listed};
    use crate::tidy::workspace::tree::Tree;

    const CODE: &str = "```rust\nfn f() {}\n```\n";

    #[test]
    fn a_chapter_that_is_not_listed_is_found() {
        let found = |summary: &str| {
            let files = [("docs/guide/src/SUMMARY.md", summary), ("docs/guide/src/steps.md", CODE)];
            is_listed(&Tree::of(&files)).len()
        };
        assert_eq!(found("- [Steps](steps.md)\n"), 0);
        assert_eq!(found("# Guide\n"), 1);
        assert_eq!(found("- [Steps](steps.md)\n- [Again](steps.md)\n"), 1);
    }

    #[test]
    fn code_that_is_not_compiled_is_found() {
        let found = |text: &str, tests: &str| {
            code_is_compiled(&Tree::of(&[("docs/guide/src/steps.md", text), ("tests/src/guide.rs", tests)])).len()
        };
        let included = "#[doc = include_str!(\"../../docs/guide/src/steps.md\")] pub struct Steps;";
        assert_eq!(found(CODE, included), 0);
        assert_eq!(found(CODE, ""), 1);
        assert_eq!(found("```sh\nls\n```\n", ""), 0);
        assert_eq!(found("```rust,ignore\nfn f() {}\n```\n", included), 1);
        assert_eq!(found("```\nls\n```\n", included), 1);
        assert_eq!(code_is_compiled(&Tree::of(&[("README.md", "```rust,ignore\n```\n")])).len(), 1);
    }
}
