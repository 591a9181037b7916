//! The path of the core crate in generated code.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Path;

use crate::checks;

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
        checks::at(&quote!(#self::__private::#item), place)
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
