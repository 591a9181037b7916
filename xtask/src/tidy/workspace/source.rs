//! One Rust file, as the rules see it.

use std::cell::OnceCell;

use proc_macro2::TokenStream;

use super::syntax::Syntax;
use super::tokens::{Token, flat, without_tests};

/// A Rust file: its path from the workspace's root, with `/`, its text and its tokens.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
    /// The tokens that are compiled outside tests.
    pub(crate) shipped: Vec<Token>,
    stream: TokenStream,
    syntax: OnceCell<Syntax>,
}

impl Source {
    /// Reads a file; the error says what is not Rust in it.
    pub(crate) fn new(path: &str, text: String) -> Result<Self, String> {
        let stream: TokenStream = text
            .parse()
            .map_err(|error: proc_macro2::LexError| format!("{path}:{}: {error}", error.span().start().line))?;
        let tokens = flat(stream.clone());
        let shipped = if is_for_tests(path) { Vec::new() } else { without_tests(&tokens) };
        Ok(Self { path: path.to_owned(), text, tokens, shipped, stream, syntax: OnceCell::new() })
    }

    /// The items that ship, parsed when a rule first asks. What the compiler would refuse has none.
    pub(crate) fn syntax(&self) -> &Syntax {
        self.syntax.get_or_init(|| Syntax::parse(self.stream.clone()).unwrap_or_default())
    }

    /// Whether nothing of the file ships: it lies in a folder of tests, or is a module of tests.
    pub(crate) fn is_for_tests(&self) -> bool {
        is_for_tests(&self.path)
    }

    /// Whether the file is in `folder`, for example `saga-core/src/machine/`.
    pub(crate) fn is_in(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

fn is_for_tests(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}

/// A source for a rule's own tests.
#[cfg(test)]
pub(crate) fn snippet(path: &str, text: &str) -> Source {
    Source::new(path, text.to_owned()).expect("the snippet is Rust")
}
