//! The path of the core crate in generated code.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Path;

/// The path that `crate = ..` gave, or `::saga_core`.
#[derive(Default)]
pub(crate) struct Krate {
    pub(crate) given: Option<Path>,
}

impl Krate {
    /// The path of a hidden item, all of it at one place: an expression is underlined at a place only if each of its
    /// tokens is there.
    pub(crate) fn private(&self, item: &str, place: Span) -> TokenStream {
        let item = proc_macro2::Ident::new(item, place);
        let path = quote!(#self::__private::#item);
        path.into_iter()
            .map(|mut token: TokenTree| {
                token.set_span(place);
                token
            })
            .collect()
    }
}

impl ToTokens for Krate {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match &self.given {
            Some(path) => path.to_tokens(tokens),
            None => tokens.extend(quote!(::saga_core)),
        }
    }
}
