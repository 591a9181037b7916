//! Tokens that make the compiler complain in the right place.
//!
//! What only the compiler can know is asked once, in code that is needed anyway, with the tokens of the
//! call at the place of the type that it judges.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Path, Type, spanned::Spanned};

use crate::{krate::Krate, model::Returned};

/// The codec of a type, which demands that it can be stored.
pub(crate) fn codec(krate: &Krate, ty: &Type, judged: Span) -> TokenStream {
    quote_spanned!(judged=> #krate::__private::codec::<#ty>())
}

/// How the compensation gets what the step took and returned, which demands that the types fit.
pub(crate) fn undo(krate: &Krate, compensation: &Path) -> TokenStream {
    let input = quote_spanned!(compensation.span()=> #krate::__private::undo_input::<Self>());
    let output = quote_spanned!(compensation.span()=> #krate::__private::undo_output::<Self>());
    quote!(#krate::__private::Option::Some(#krate::__private::UndoOf::new(#input, #output)))
}

/// The end of a call, which demands that the error says what it means.
pub(crate) fn finish(krate: &Krate, returned: &Returned, call: &TokenStream) -> TokenStream {
    let judged = match returned {
        Returned::Result { error, .. } => error.span(),
        Returned::Alias(ty) => ty.span(),
        Returned::Other(written) => written.span(),
    };
    let finish = quote_spanned!(judged=> #krate::__private::finish);
    quote!(#finish(#call))
}
