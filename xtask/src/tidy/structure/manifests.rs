//! What is decided once in the workspace is inherited by every crate.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::tree::{TextFile, Tree};

const INHERITED: [&str; 3] = ["edition", "rust-version", "license"];

pub(crate) fn inherit_from_the_workspace(tree: &Tree) -> Vec<Finding> {
    tree.manifests.iter().filter(|manifest| !is_workspace(manifest)).flat_map(check).collect()
}

/// Whether it is where the decisions are written down.
fn is_workspace(manifest: &TextFile) -> bool {
    manifest.text.lines().any(|line| line.trim() == "[workspace]")
}

fn check(manifest: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let package = section(manifest, "package");
    for key in INHERITED {
        let line = format!("{key}.workspace = true");
        if !package.iter().any(|(_, text)| *text == line) {
            let message = format!("`{line}` is missing in [package]: it is decided once, in the workspace");
            findings.push(Finding::error(&manifest.path, package.first().map_or(1, |(at, _)| *at), message));
        }
    }
    if !section(manifest, "lints").iter().any(|(_, text)| *text == "workspace = true") {
        let message = "`[lints] workspace = true` is missing: the lints are decided once, in the workspace";
        findings.push(Finding::error(&manifest.path, manifest.text.lines().count(), message));
    }
    findings
}

/// The lines of one section, with their numbers.
fn section<'a>(manifest: &'a TextFile, name: &str) -> Vec<(usize, &'a str)> {
    let numbered = (1..).zip(manifest.text.lines().map(str::trim));
    let inside = numbered.skip_while(|(_, line)| *line != format!("[{name}]")).skip(1);
    inside.take_while(|(_, line)| !line.starts_with('[')).collect()
}

#[cfg(test)]
mod tests {
    use super::inherit_from_the_workspace;
    use crate::tidy::workspace::tree::Tree;

    const GOOD: &str = "[package]\nname = \"a\"\nedition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n\n[lints]\nworkspace = true\n";

    #[test]
    fn what_is_not_inherited_is_found() {
        let found = |text: &str| inherit_from_the_workspace(&Tree::of(&[("a/Cargo.toml", text)])).len();
        assert_eq!(found(GOOD), 0);
        for key in ["edition", "rust-version", "license"] {
            assert_eq!(found(&GOOD.replace(&format!("{key}.workspace = true"), &format!("{key} = \"x\""))), 1, "{key}");
        }
        assert_eq!(found(&GOOD.replace("[lints]\nworkspace = true\n", "")), 1);
        assert_eq!(found(&GOOD.replace("[lints]\n", "[lints.rust]\n")), 1);
        assert_eq!(inherit_from_the_workspace(&Tree::of(&[("Cargo.toml", "[workspace]\n")])), []);
    }
}
