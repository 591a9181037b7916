//! Tokens that make the compiler complain in the right place.
//!
//! What only the compiler can know is asked once, in code that is needed anyway. A type is judged as the argument of a
//! call whose tokens are all at the place of that type: only so is all of it underlined.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Path, Type, spanned::Spanned};

use crate::{
    krate::{Krate, at},
    model::Returned,
};

/// The ids of these rules, each of which has a case under `tests/ui` as well.
#[cfg(test)]
pub(crate) const IDS: &[&str] = &[
    "alias",
    "body",
    "called-contract",
    "choice-arm",
    "choice-condition",
    "closure-types",
    "compensated",
    "compensation-alias",
    "contract-input",
    "contract-output",
    "each-output",
    "event",
    "event-input",
    "failure",
    "group-branch",
    "hosted",
    "if-taken-output",
    "list-items",
    "migration-output",
    "not-a-compensation",
    "not-a-contract",
    "output-step",
    "not-a-resolution",
    "payload",
    "resolve-input",
    "resolve-output",
    "signal",
    "resolved",
    "send",
    "state-clone",
    "step",
    "step-connection",
    "step-input",
    "step-mapping",
    "sub-saga-input",
    "type-parameter-bounds",
    "unannotated-compensation",
    "unannotated-resolution",
    "unannotated-step",
    "uncompensated",
    "undo-input",
    "undo-output",
];

/// The codec of a type, which demands that it can be stored.
pub(crate) fn codec(krate: &Krate, ty: &Type, place: Span) -> TokenStream {
    let codec = krate.private("codec", place);
    quote_spanned!(place=> #codec::<#ty>())
}

/// The codec of a type of a function that implements a contract, which demands that it is the contract's type.
pub(crate) fn implemented(krate: &Krate, function: &str, ty: &Type, place: Span) -> TokenStream {
    let function = krate.private(function, place);
    quote_spanned!(place=> #function::<Self, #ty>())
}

/// Demands that the contract says of the compensation what is there.
pub(crate) fn compensated(krate: &Krate, contract: &Path, compensation: Option<&Path>) -> TokenStream {
    let (function, place) = match compensation {
        Some(compensation) => ("compensated", compensation.span()),
        None => ("uncompensated", contract.span()),
    };
    let function = krate.private(function, place);
    quote_spanned!(place=> #function::<Self>())
}

/// What is known of the compensation, which demands that it is one and that the types fit.
///
/// It is named once in all that is generated, as an alias of its own: a function without the attribute is one error.
pub(crate) fn undo(krate: &Krate, compensation: &Path, alias: &TokenStream) -> TokenStream {
    let place = compensation.span();
    let some = krate.private("Option", place);
    let undone_by = krate.private("undone_by", place);
    let alias = at(alias, place);
    quote_spanned!(place=> #some::Some(#undone_by::<Self, #alias>()))
}

/// What is known of the resolution, which demands that it is one and that the types fit.
pub(crate) fn resolve(krate: &Krate, resolution: &Path, alias: &TokenStream) -> TokenStream {
    let place = resolution.span();
    let some = krate.private("Option", place);
    let resolved_by = krate.private("resolved_by", place);
    let alias = at(alias, place);
    quote_spanned!(place=> #some::Some(#resolved_by::<Self, #alias>()))
}

/// What a resolution finds, which demands that it returns a `Resolved`.
pub(crate) fn found(krate: &Krate, returned: &Type, place: Span) -> TokenStream {
    let value = krate.private("ResolvedValue", place);
    quote_spanned!(place=> <#returned as #value>::Value)
}

/// The end of a call, which demands that the error says what it means.
pub(crate) fn finish(krate: &Krate, returned: &Returned, call: &TokenStream) -> TokenStream {
    match returned {
        Returned::Result { error, .. } => {
            let place = error.span();
            let finish = krate.private("finish", place);
            quote_spanned!(place=> #finish::<_, #error>(#call))
        }
        Returned::Alias(ty) => {
            let place = ty.span();
            let finish = krate.private("finish_alias", place);
            quote_spanned!(place=> #finish::<#ty>(#call))
        }
        Returned::Other(_) => call.clone(),
    }
}

/// The tuple of what is read for the function.
pub(crate) fn reads(types: &[&Type]) -> TokenStream {
    let place = types.first().map_or_else(Span::call_site, Spanned::span);
    let types = quote!(#(#types,)*);
    quote_spanned!(place=> (#types))
}
