//! The annotated function, read as far as its signature.

use std::fmt;

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, FnArg, Signature, Visibility,
    parse::{Parse, ParseStream},
    parse_quote,
};

use crate::{errors::Errors, krate::Krate, output_of_type::type_as_step_mut, rule::Rule};

/// Which attribute it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Step,
    Compensation,
    Resolution,
}

impl Kind {
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Step => "saga_step",
            Self::Compensation => "saga_compensation",
            Self::Resolution => "saga_resolution",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Step => "step",
            Self::Compensation => "compensation",
            Self::Resolution => "resolution",
        })
    }
}

/// What stands under the attribute. The body is not parsed: it is the compiler's, mistakes included.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    body: TokenStream,
}

impl Function {
    /// Reads the item; `None` if it is no function, which is reported.
    pub(crate) fn read(kind: Kind, item: &TokenStream, errors: &mut Errors) -> Option<Self> {
        let Ok(function) = syn::parse2::<Self>(item.clone()) else {
            let message = format!(
                "`#[{}]` stands on an `async fn`\nhelp: write `#[{0}] async fn name(..) -> Result<.., StepError> {{ .. }}`",
                kind.attribute()
            );
            errors.at(Rule::NotAFunction, item, message);
            return None;
        };
        Some(function)
    }

    /// The function with a step in place of each type where the name of a step belongs; `None` if there is no such type. That
    /// mistake was reported; the body that reads the type has no other.
    pub(crate) fn with_named_steps(&self, krate: &Krate) -> Option<TokenStream> {
        let Self { attributes, visibility, signature, body } = self;
        let mut signature = signature.clone();
        let mut is_changed = false;
        for parameter in &mut signature.inputs {
            let FnArg::Typed(parameter) = parameter else { continue };
            if let Some(ty) = type_as_step_mut(&mut parameter.ty) {
                *ty = parse_quote!(#krate::__private::Unnamed<#ty>);
                is_changed = true;
            }
        }
        is_changed.then(|| quote!(#(#attributes)* #visibility #signature #body))
    }

    /// Whether it is more than a declaration.
    pub(crate) fn has_body(&self) -> bool {
        matches!(self.body.clone().into_iter().next(), Some(TokenTree::Group(_)))
    }
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self {
            attributes: input.call(Attribute::parse_outer)?,
            visibility: input.parse()?,
            signature: input.parse()?,
            body: input.parse()?,
        })
    }
}

/// The item as it is kept: unchanged, but for a missing body, which would be an error of its own.
pub(crate) fn kept(item: TokenStream) -> TokenStream {
    match syn::parse2::<Function>(item.clone()) {
        Ok(Function { attributes, visibility, signature, body }) if body.to_string() == ";" => {
            quote!(#(#attributes)* #[allow(unused_variables)] #visibility #signature { ::core::unimplemented!() })
        }
        _ => item.into_token_stream(),
    }
}
