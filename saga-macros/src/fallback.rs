//! What is emitted when the signature is wrong: as much of a step as was understood, so that the
//! places where it is used do not complain as well.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use crate::{
    args::Options,
    expand,
    function::Kind,
    generics::{self, Generics},
    model::Model,
    validate,
};

/// A type that stands for the function, and that is a step of every store if its input was understood.
pub(crate) fn fallback(model: &Model, options: &Options) -> TokenStream {
    if validate::is_method(model) {
        return TokenStream::new();
    }
    let generics = Generics::new(model, options);
    let named = model.values().all(|value| !generics::any_ident(&value.ty.to_token_stream(), &|word| word == "impl"));
    let usable = named && model.input().is_some() && model.signature.generics.params.is_empty();
    let parts = match model.kind {
        _ if !usable => TokenStream::new(),
        Kind::Step => {
            let step = step(model, options);
            let hosted = unchecked_contract(model, options);
            quote!(#step #hosted)
        }
        Kind::Compensation => compensation(model, options),
        Kind::Resolution => resolution(model, options),
    };
    expand::item(model, &generics, &[parts])
}

fn step(model: &Model, options: &Options) -> TokenStream {
    let krate = &options.krate;
    let this = model.ident();
    let input = model.input();
    let output = expand::value_type(krate, model);
    let name = validate::name_of_step(model, options);
    quote! {
        #[diagnostic::do_not_recommend]
        impl #krate::__private::Step for #this {
            type Input = #input;
            type Output = #output;
            type Params = ();
            const NAME: &'static str = #name;
            const INPUT: #krate::__private::Codec<Self::Input> = #krate::__private::no_codec();
            const OUTPUT: #krate::__private::Codec<Self::Output> = #krate::__private::no_codec();
        }
        impl<__S: #krate::__private::Store> #krate::__private::Handler<__S> for #this {
            fn handler() -> #krate::__private::Run<__S, Self> {
                ::core::unimplemented!()
            }
        }
    }
}

fn unchecked_contract(model: &Model, options: &Options) -> Option<TokenStream> {
    let krate = &options.krate;
    let this = model.ident();
    let contract = options.implements.as_ref()?;
    Some(quote!(impl #krate::__private::Hosted for #this { type Contract = #contract; }))
}

fn compensation(model: &Model, options: &Options) -> TokenStream {
    let krate = &options.krate;
    let this = model.ident();
    let input = model.input();
    let output = expand::undone_type(krate, model);
    quote! {
        impl #krate::__private::Compensation for #this {
            type Input = #input;
            type Output = #output;
            type Params = ();
        }
        impl<__S: #krate::__private::Store> #krate::__private::CompensationHandler<__S> for #this {
            fn handler() -> #krate::__private::Compensate<__S, Self> {
                ::core::unimplemented!()
            }
        }
    }
}

fn resolution(model: &Model, options: &Options) -> TokenStream {
    let krate = &options.krate;
    let this = model.ident();
    let input = model.input();
    let found = expand::found_type(krate, model);
    quote! {
        impl #krate::__private::Resolution for #this {
            type Input = #input;
            type Output = #found;
            type Params = ();
            fn resolver() -> #krate::__private::ResolveFn<Self> {
                ::core::unimplemented!()
            }
        }
    }
}
