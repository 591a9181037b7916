//! All mistakes of one attribute, reported together.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

use crate::rule::Rule;

/// Collects mistakes. It must be turned into tokens, so that none is lost.
#[derive(Debug)]
pub(crate) struct Errors {
    found: Vec<(Rule, syn::Error)>,
    read: bool,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { found: Vec::new(), read: false }
    }

    /// Reports a broken rule at these tokens, all of which are underlined.
    pub(crate) fn at(&mut self, rule: Rule, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.found.push((rule, syn::Error::new_spanned(tokens, message)));
    }

    /// Reports a broken rule at a place.
    pub(crate) fn at_span(&mut self, rule: Rule, span: Span, message: impl std::fmt::Display) {
        self.found.push((rule, syn::Error::new(span, message)));
    }

    /// Reports what the parser found.
    pub(crate) fn parse(&mut self, rule: Rule, error: syn::Error) {
        self.found.push((rule, error));
    }

    /// How many mistakes there are so far.
    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }

    /// The mistakes as `compile_error!`, each at its place.
    pub(crate) fn into_tokens(mut self) -> TokenStream {
        self.read = true;
        self.found.iter().map(|(_, error)| error.to_compile_error()).collect()
    }

    /// The rules that were broken.
    #[cfg(test)]
    pub(crate) fn into_rules(mut self) -> Vec<Rule> {
        self.read = true;
        self.found.iter().map(|(rule, _)| *rule).collect()
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        assert!(self.read || std::thread::panicking(), "mistakes were collected and never reported");
    }
}
