//! Tokens that make the compiler complain in the right place.
//!
//! What only the compiler can know is asked once, in code that is needed anyway. A type is judged as the argument of a
//! call whose tokens are all at the place of that type: only so is all of it underlined.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, Path, Type, spanned::Spanned};

use crate::{
    krate::{Krate, at},
    model::Returned,
};

/// The ids of these rules. Each has a case under `tests-build/tests/ui`.
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
    "foreign-error",
    "group-branch",
    "hosted",
    "if-taken-output",
    "list-items",
    "lock-entities",
    "migration-output",
    "not-a-compensation",
    "not-a-contract",
    "output-step",
    "not-a-resolution",
    "payload",
    "private-type",
    "resolve-input",
    "resolve-output",
    "signal",
    "resolved",
    "result-step",
    "result-type",
    "send",
    "state-clone",
    "step",
    "step-connection",
    "step-input",
    "step-mapping",
    "sub-saga-input",
    "sub-saga-output",
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

/// What the contract declares, which demands that it is one.
pub(crate) fn declared(krate: &Krate, contract: &Path) -> TokenStream {
    let place = contract.span();
    let declared = krate.private("declared", place);
    quote_spanned!(place=> #declared::<#contract>())
}

/// The codec of the input of a function that implements a contract, which demands that it is the contract's type.
pub(crate) fn implemented_input(krate: &Krate, contract: &Path, ty: &Type) -> TokenStream {
    let declared = declared(krate, contract);
    let input = quote_spanned!(ty.span()=> .input::<#ty>());
    quote!(#declared #input)
}

/// The same of the output, which is judged at a place.
pub(crate) fn implemented_output(krate: &Krate, contract: &Path, ty: &Type, place: Span) -> TokenStream {
    let declared = declared(krate, contract);
    let output = quote_spanned!(place=> .output::<#ty>());
    quote!(#declared #output)
}

/// Demands that the contract says of the compensation what is there.
pub(crate) fn compensated(krate: &Krate, contract: &Path, compensation: Option<&Path>) -> TokenStream {
    let declared = declared(krate, contract);
    let says = compensation.map_or_else(
        || quote_spanned!(contract.span()=> .uncompensated()),
        |compensation| quote_spanned!(compensation.span()=> .compensated()),
    );
    quote!(#declared #says)
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

/// What a closure says that the step locks, which demands that it takes the input and returns entities.
pub(crate) fn lock(krate: &Krate, entities: &Expr) -> TokenStream {
    let place = entities.span();
    let some = krate.private("Option", place);
    let entities_of = krate.private("entities_of", place);
    quote_spanned!(place=> #some::Some(|__input| #entities_of(__input, #entities)))
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
            let returned = quote_spanned!(place=> __returned);
            let finished = quote_spanned!(place=> #finish::<#ty>(#returned));
            quote!({ let #returned = #call; #finished })
        }
        Returned::Other(_) => call.clone(),
    }
}

/// Adds what a parameter needs, which demands that the runtime can read it.
pub(crate) fn needs(krate: &Krate, ty: &Type) -> TokenStream {
    from_step(krate, ty, &quote!(needs(__needs)))
}

/// Reads a parameter, which demands that the runtime can do so.
pub(crate) fn read(krate: &Krate, ty: &Type) -> TokenStream {
    from_step(krate, ty, &quote!(from_step(__args)?))
}

/// The call begins and ends where the type does, which the function names too: of equal errors at one place rustc tells
/// one.
fn from_step(krate: &Krate, ty: &Type, call: &TokenStream) -> TokenStream {
    let mut places = quote!(#ty).into_iter().map(|token| token.span());
    let first = places.next().unwrap_or_else(Span::call_site);
    let last = places.last().unwrap_or(first);
    let from_step = krate.private("FromStep", first);
    let call = at(call, last);
    quote_spanned!(first=> <#ty as #from_step>::#call)
}
