//! Every public async function says what becomes of its work when its future is dropped.
//!
//! A trait may say it for all its methods, and a module for all its traits, since a contract is read as a whole.

use crate::tidy::finding::Finding;
use crate::tidy::workspace::source::Source;
use crate::tidy::workspace::tokens::{Token, closing, opening, starts_with};
use crate::tidy::workspace::tree::Tree;

const CRATES: [&str; 11] = [
    "saga-amqp/src/",
    "saga-core/src/",
    "saga-http/src/",
    "saga-kafka/src/",
    "saga-postgres/src/",
    "saga-redis/src/",
    "saga-reservations/src/",
    "saga-sql/src/",
    "saga-sqlite/src/",
    "saga-sqs/src/",
    "saga-testkit/src/",
];

const SECTION: &str = "# Cancel safety";

pub(crate) fn is_documented(tree: &Tree) -> Vec<Finding> {
    let asked = tree.sources.iter().filter(|source| CRATES.iter().any(|folder| source.is_in(folder)));
    asked.flat_map(|source| check(source, module_says_it(tree, source))).collect()
}

fn check(source: &Source, module_says_it: bool) -> Vec<Finding> {
    let tokens = &source.shipped;
    let traits = public_traits(tokens);
    let mut findings = Vec::new();
    for at in 0..tokens.len() {
        if tokens[at].text != "fn" || !is_async(tokens, at) {
            continue;
        }
        let begin = begin_of_modifiers(tokens, at);
        let owner = traits.iter().find(|owner| owner.body.contains(&at));
        let is_public = owner.is_some() || is_public(tokens, begin);
        let owner_says_it = owner.is_some_and(|owner| module_says_it || owner.docs.contains(SECTION));
        if is_public && !owner_says_it && !docs(tokens, begin).contains(SECTION) {
            let name = tokens.get(at + 1).map_or("", |token| token.text.as_str());
            let message = format!("`{name}` is async and public, and its documentation has no section `{SECTION}`");
            findings.push(Finding::error(&source.path, tokens[at].line, message));
        }
    }
    findings
}

/// Whether the file's own module documentation or that of a folder around it has the section.
fn module_says_it(tree: &Tree, source: &Source) -> bool {
    let is_around = |other: &Source| {
        let folder = other.path.strip_suffix("mod.rs");
        other.path == source.path || folder.is_some_and(|folder| source.is_in(folder))
    };
    let around = tree.sources.iter().filter(|other| is_around(other));
    around.flat_map(|source| source.text.lines()).any(|line| line == format!("//! {SECTION}"))
}

/// A public trait: one section in its documentation may speak for all its methods.
struct Trait {
    body: std::ops::Range<usize>,
    docs: String,
}

fn public_traits(tokens: &[Token]) -> Vec<Trait> {
    let mut traits = Vec::new();
    for at in 0..tokens.len() {
        let begin = begin_of_modifiers(tokens, at);
        if tokens[at].text == "trait" && is_public(tokens, begin) {
            let open = (at..tokens.len()).find(|&open| tokens[open].text == "{").unwrap_or(tokens.len());
            traits.push(Trait { body: open..closing(tokens, open), docs: docs(tokens, begin) });
        }
    }
    traits
}

/// Whether the function at `at` is `async fn`, or returns `impl Future`.
fn is_async(tokens: &[Token], at: usize) -> bool {
    if at > 0 && tokens[begin_of_modifiers(tokens, at)..at].iter().any(|token| token.text == "async") {
        return true;
    }
    let signature = tokens[at..].iter().position(|token| token.text == "{" || token.text == ";").unwrap_or(0);
    let signature = &tokens[at..at + signature];
    let arrow = (0..signature.len()).find(|&arrow| starts_with(&signature[arrow..], &["-", ">", "impl"]));
    arrow.is_some_and(|arrow| signature[arrow..].iter().take(12).any(|token| token.text == "Future"))
}

/// The index of the first of `pub`, `(crate)`, `const`, `async`, `unsafe`, … before the keyword at `at`.
fn begin_of_modifiers(tokens: &[Token], at: usize) -> usize {
    let mut begin = at;
    while let Some(before) = begin.checked_sub(1) {
        match tokens[before].text.as_str() {
            "pub" | "const" | "async" | "unsafe" | "extern" => begin = before,
            ")" => {
                let open = opening(tokens, before);
                if open == 0 || tokens[open - 1].text != "pub" {
                    break;
                }
                begin = open;
            }
            _ => break,
        }
    }
    begin
}

fn is_public(tokens: &[Token], begin: usize) -> bool {
    starts_with(&tokens[begin..], &["pub"]) && !starts_with(&tokens[begin..], &["pub", "("])
}

/// What the attributes before `begin` say, one line each.
fn docs(tokens: &[Token], mut begin: usize) -> String {
    let mut lines = Vec::new();
    while begin >= 2 && tokens[begin - 1].text == "]" {
        let open = opening(tokens, begin - 1);
        if open == 0 || tokens[open - 1].text != "#" {
            break;
        }
        if tokens[open + 1].text == "doc" {
            lines.push(tokens[open + 1..begin - 1].iter().map(|token| token.text.as_str()).collect::<String>());
        }
        begin = open - 1;
    }
    lines.reverse();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::is_documented;
    use crate::tidy::workspace::tree::Tree;

    fn lines(text: &str) -> Vec<usize> {
        is_documented(&Tree::of(&[("saga-core/src/a.rs", text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_undocumented_async_function_is_found() {
        assert_eq!(lines("/// Does it.\npub async fn f() {}\n"), [2]);
        assert_eq!(lines("impl A {\n  /// Does it.\n  #[must_use]\n  pub async fn f(&self) {}\n}\n"), [4]);
        assert_eq!(lines("/// Does it.\npub fn f() -> impl Future<Output = ()> + Send { g() }\n"), [2]);
        assert_eq!(
            lines("/// Does it.\n#[async_trait]\npub trait A {\n  /// Does it.\n  async fn f(&self);\n}\n"),
            [5]
        );
    }

    #[test]
    fn documented_and_private_functions_pass() {
        assert_eq!(
            lines("/// Does it.\n///\n/// # Cancel safety\n///\n/// Safe.\n#[inline]\npub async fn f() {}\n"),
            [0; 0]
        );
        assert_eq!(lines("/// Does it.\npub(crate) async fn f() {}\nasync fn g() {}\n"), [0; 0]);
        assert_eq!(lines("/// Does it.\npub fn f() -> u32 { let f: Box<dyn Future>; 1 }\n"), [0; 0]);
        assert_eq!(
            lines(
                "/// T.\n///\n/// # Cancel safety\n/// All.\n#[async_trait]\npub trait A {\n  async fn f(&self);\n}\n"
            ),
            [0; 0]
        );
        assert_eq!(lines("trait A { async fn f(&self); }\nimpl A for B { async fn f(&self) {} }\n"), [0; 0]);
    }

    #[test]
    fn other_crates_are_not_asked() {
        assert_eq!(is_documented(&Tree::of(&[("examples/order-saga/src/a.rs", "pub async fn f() {}\n")])), []);
    }

    #[test]
    fn a_module_speaks_for_its_traits_only() {
        let text = "pub trait A {\n  async fn f(&self);\n}\npub async fn g() {}\n";
        let files = [
            ("saga-core/src/x/mod.rs", "//! X.\n//!\n//! # Cancel safety\n//! All.\n"),
            ("saga-core/src/x/y/b.rs", "pub trait B {\n  async fn f(&self);\n}\n"),
            ("saga-core/src/x/a.rs", text),
        ];
        let lines: Vec<usize> = is_documented(&Tree::of(&files)).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [4]);
    }
}
