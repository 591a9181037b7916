//! The path of the core crate in generated code.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Path;

/// The path that `crate = ..` gave, or `::saga_core`.
#[derive(Default)]
pub(crate) struct Krate {
    pub(crate) given: Option<Path>,
}

impl ToTokens for Krate {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match &self.given {
            Some(path) => path.to_tokens(tokens),
            None => tokens.extend(quote!(::saga_core)),
        }
    }
}
