//! What the documents point at is there: files, headings, and the tests that they name.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::markdown::{Link, anchors, links};
use crate::tidy::workspace::tree::{TextFile, Tree};

pub(crate) fn resolve(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.markdown {
        for link in links(&file.text) {
            if let Some(complaint) = complaint(tree, file, &link) {
                findings.push(Finding::error(&file.path, link.line, complaint));
            }
        }
    }
    findings
}

fn complaint(tree: &Tree, file: &TextFile, link: &Link) -> Option<String> {
    let target = link.target.as_str();
    // A path in code is followed by rustdoc, which includes the document.
    if target.contains("://") || target.starts_with("mailto:") || target.contains("::") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { file.path.clone() } else { joined(&file.path, path) };
    if !path.is_empty() && !tree.has(&path) {
        return Some(format!("the link to {target} leads nowhere: there is no {path}"));
    }
    let document = tree.markdown.iter().find(|document| document.path == path);
    if !anchor.is_empty()
        && document.is_some_and(|document| !anchors(&document.text).iter().any(|known| known == anchor))
    {
        return Some(format!("the link to {target} leads nowhere: {path} has no heading #{anchor}"));
    }
    missing_name(tree, link, &path)
}

/// A link whose text is a name in code, `[`g1_..`](file.rs)`, promises that the file has it.
fn missing_name(tree: &Tree, link: &Link, path: &str) -> Option<String> {
    let name = link.text.strip_prefix('`')?.strip_suffix('`')?;
    let source = tree.sources.iter().find(|source| source.path == path)?;
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let is_there = source.tokens.iter().any(|token| token.text == name);
    (is_name && !is_there).then(|| format!("{path} has no `{name}`"))
}

/// `target` as seen from the folder of `file`, from the workspace's root.
fn joined(file: &str, target: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::resolve;
    use crate::tidy::workspace::tree::Tree;

    #[test]
    fn dead_links_are_found() {
        let lines = |text: &str| -> Vec<usize> {
            let tree = Tree::of(&[
                ("docs/a.md", text),
                ("README.md", "# The two commands\n"),
                ("tests/tests/a.rs", "fn g1_x() {}\n"),
            ]);
            resolve(&tree).iter().map(|finding| finding.line).collect()
        };
        assert_eq!(lines("[a](../README.md)\n[b](../MISSING.md)\n[c](https://example.com/x)\n[d](../tests)\n"), [2]);
        assert_eq!(lines("[a](../README.md#the-two-commands)\n[b](../README.md#three)\n[c](#none)\n"), [2, 3]);
        assert_eq!(
            lines("[`g1_x`](../tests/tests/a.rs)\n[`g2_y`](../tests/tests/a.rs)\n[the tests](../tests/tests/a.rs)\n"),
            [2]
        );
    }
}
