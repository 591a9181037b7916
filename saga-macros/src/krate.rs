//! The path of the core crate in generated code.

use proc_macro2::{Ident, Span, TokenStream};
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
        let item = Ident::new(item, place);
        at(&quote!(#self::__private::#item), place)
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

/// The same tokens, all of them at one place.
pub(crate) fn at(tokens: &TokenStream, place: Span) -> TokenStream {
    let moved = tokens.clone().into_iter().map(|mut token| {
        token.set_span(place);
        token
    });
    moved.collect()
}
