//! From a declaration without a body to tokens: a step that another service hosts. No rule is checked here.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Ident, Token};

use crate::{args::Options, checks, expand, model::Model, validate};

/// What stands in place of the declaration. With a mistake in it, `is_sound` is false, and nothing more is judged.
pub(crate) fn expand(model: &Model, options: &Options, is_sound: bool) -> TokenStream {
    if validate::is_method(model) {
        return TokenStream::new();
    }
    let ident = model.ident();
    let (attributes, conditions, visibility) = (&model.attributes, &model.conditions, &model.visibility);
    let signature = signature(model);
    let parts = model.input().map(|_| implementations(model, options, is_sound));
    quote! {
        #(#attributes)*
        #[allow(non_camel_case_types, missing_debug_implementations, unreachable_pub, clippy::empty_structs_with_brackets)]
        #visibility struct #ident {}

        #(#conditions)*
        #[allow(deprecated, non_camel_case_types, private_bounds, unused_qualifications)]
        const _: () = {
            #parts
            #signature
        };
    }
}

fn implementations(model: &Model, options: &Options, is_sound: bool) -> TokenStream {
    let krate = &options.krate;
    let ident = model.ident();
    let service = options.service.as_ref().map(syn::LitStr::value).unwrap_or_default();
    let is_compensated = options.compensated.is_some();
    let (undoable, undo) = if is_compensated {
        (quote!(HasCompensation), quote!(Remote))
    } else {
        (quote!(NoCompensation), quote!(Nothing))
    };
    let step = step(model, options, is_sound);
    quote! {
        #step
        #[automatically_derived]
        impl #krate::__private::Contract for #ident {
            const SERVICE: &'static str = #service;
            const COMPENSATED: bool = #is_compensated;
        }
        #[automatically_derived]
        impl #krate::__private::DeclaredContract for #ident {
            type Types = (Self, <Self as #krate::__private::Step>::Input, <Self as #krate::__private::Step>::Output, #krate::__private::#undoable);
        }
        #[automatically_derived]
        impl<__S: #krate::__private::Store> #krate::__private::Handler<__S> for #ident {
            fn handler() -> #krate::__private::Run<__S, Self> {
                #krate::__private::Run::Remote { service: #service }
            }
            fn undo() -> #krate::__private::Undo<__S, Self> {
                #krate::__private::Undo::#undo
            }
        }
    }
}

fn step(model: &Model, options: &Options, is_sound: bool) -> TokenStream {
    let krate = &options.krate;
    let ident = model.ident();
    let name = validate::name_of_step(model, options);
    let settings = expand::settings(krate, options);
    let input = model.input();
    let output = expand::value_type(krate, model);
    let (input_codec, output_codec) = if is_sound {
        let input_codec = input.map(|ty| checks::codec(krate, ty, syn::spanned::Spanned::span(ty)));
        (quote!(#input_codec), checks::codec(krate, &output, expand::judged_output(model)))
    } else {
        (quote!(#krate::__private::no_codec()), quote!(#krate::__private::no_codec()))
    };
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl #krate::__private::Step for #ident {
            type Input = #input;
            type Output = #output;
            const NAME: &'static str = #name;
            const OPTIONS: #krate::__private::StepOptions = #settings;
            const INPUT: #krate::__private::Codec<Self::Input> = #input_codec;
            const OUTPUT: #krate::__private::Codec<Self::Output> = #output_codec;
        }
    }
}

/// The declaration with a body, so that what it names counts as used, and what is wrong with that is reported there.
fn signature(model: &Model) -> TokenStream {
    let mut signature = model.signature.clone();
    signature.ident = Ident::new("__contract", model.ident().span());
    signature.asyncness = signature.asyncness.or_else(|| Some(<Token![async]>::default()));
    quote! {
        #[allow(dead_code, unused_variables, clippy::all, clippy::pedantic)]
        #signature { ::core::unimplemented!() }
    }
}
