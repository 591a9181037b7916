//! The commands that the README tells people to type are there.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::markdown::code_lines;
use crate::tidy::workspace::tree::{TextFile, Tree};

const README: &str = "README.md";

/// What a reader tries first, in this order.
const TWO_COMMANDS: [&str; 2] = ["cargo run --release -p order-saga", "cargo xtask test"];

pub(crate) fn the_two_come_first(tree: &Tree) -> Vec<Finding> {
    let Some(readme) = tree.markdown.iter().find(|file| file.path == README) else {
        return vec![Finding::error(README, 1, "there is no README.md")];
    };
    let commands = code_lines(&readme.text).into_iter().filter(|(_, line)| line.starts_with("cargo "));
    let first: Vec<&str> = commands.map(|(_, line)| bare(line)).take(2).collect();
    if first == TWO_COMMANDS {
        return Vec::new();
    }
    let message = format!("the first two commands are `{}`, and here they are {first:?}", TWO_COMMANDS.join("` and `"));
    vec![Finding::error(README, 1, message)]
}

/// Each `cargo run -p X` names a crate with a binary, each `cargo xtask X` one of `tasks`.
pub(crate) fn exist(tree: &Tree, tasks: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.markdown {
        for (line, command) in code_lines(&file.text) {
            let words: Vec<&str> = bare(command).split_whitespace().collect();
            if let Some(complaint) = complaint(tree, tasks, &words) {
                findings.push(Finding::error(&file.path, line, complaint));
            }
        }
    }
    findings
}

fn complaint(tree: &Tree, tasks: &[String], words: &[&str]) -> Option<String> {
    match words {
        ["cargo", "xtask", task, ..] if !tasks.iter().any(|known| known == task) => {
            Some(format!("there is no task `{task}`; there are {}", tasks.join(", ")))
        }
        ["cargo", "run", options @ ..] => {
            let at = options.iter().position(|option| matches!(*option, "-p" | "--package"))?;
            let name = options.get(at + 1)?;
            let manifest = tree.manifests.iter().find(|manifest| has_name(manifest, name));
            let folder = manifest.map(|manifest| manifest.path.trim_end_matches("Cargo.toml"));
            let has_binary = folder.is_some_and(|folder| {
                tree.has(&format!("{folder}src/main.rs")) || tree.has(&format!("{folder}src/bin"))
            });
            (!has_binary).then(|| format!("there is no crate `{name}` with a binary"))
        }
        _ => None,
    }
}

fn has_name(manifest: &TextFile, name: &str) -> bool {
    manifest.text.lines().any(|line| line.trim() == format!("name = \"{name}\""))
}

/// A line without its comment.
fn bare(line: &str) -> &str {
    line.split_once(" #").map_or(line, |(command, _)| command).trim()
}

#[cfg(test)]
mod tests {
    use super::{exist, the_two_come_first};
    use crate::tidy::workspace::tree::Tree;

    #[test]
    fn another_beginning_is_found() {
        let found = |text: &str| the_two_come_first(&Tree::of(&[("README.md", text)])).len();
        assert_eq!(
            found("```sh\ncargo run --release -p order-saga   # the example\ncargo xtask test\ncargo doc\n```\n"),
            0
        );
        assert_eq!(found("```sh\ncargo xtask test\ncargo run --release -p order-saga\n```\n"), 1);
        assert_eq!(found("cargo run --release -p order-saga\ncargo xtask test\n"), 1);
        assert_eq!(the_two_come_first(&Tree::default()).len(), 1);
    }

    #[test]
    fn commands_that_do_not_exist_are_found() {
        let manifest = ("examples/order-saga/Cargo.toml", "[package]\nname = \"order-saga\"\n");
        let main = ("examples/order-saga/src/main.rs", "fn main() {}\n");
        let lines = |text: &str, files: &[(&str, &str)]| -> Vec<usize> {
            let tree = Tree::of(&[&[("A.md", text)], files].concat());
            exist(&tree, &["test".to_owned(), "sim".to_owned()]).iter().map(|finding| finding.line).collect()
        };
        let text = "```sh\ncargo run --release -p order-saga -- verify\ncargo run -p other\ncargo xtask sim --seeds 1\ncargo xtask fly\n```\n";
        assert_eq!(lines(text, &[manifest, main]), [3, 5]);
        assert_eq!(lines(text, &[manifest]), [2, 3, 5]);
    }
}
