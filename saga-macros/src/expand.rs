//! From the model to tokens. No rule is checked here.

use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Path, Type, spanned::Spanned};

use crate::{
    args::{Exhausted, Options},
    checks,
    function::Kind,
    generics::Generics,
    krate::{self, Krate},
    model::{Model, Returned, Role},
    validate,
};

/// What stands after the function.
pub(crate) fn expand(model: &Model, options: &Options) -> TokenStream {
    let generics = Generics::new(model, options);
    let parts = match model.kind {
        Kind::Step => {
            let hosted = hosted(options, &generics);
            vec![
                aliases(options, &generics),
                step(model, options, &generics),
                handler(model, options, &generics),
                hosted,
            ]
        }
        Kind::Compensation => {
            vec![compensation(model, options, &generics), compensation_handler(model, options, &generics)]
        }
        Kind::Resolution => vec![resolution(model, options, &generics)],
    };
    item(model, &generics, &parts)
}

/// The type that stands for the function, and what is implemented for it.
pub(crate) fn item(model: &Model, generics: &Generics<'_>, parts: &[TokenStream]) -> TokenStream {
    let conditions = &model.conditions;
    let visibility = &model.visibility;
    let declaration = generics.declaration();
    quote! {
        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, missing_debug_implementations, unreachable_pub, clippy::empty_structs_with_brackets)]
        #visibility #declaration

        #(#conditions)*
        #[allow(deprecated, non_camel_case_types, private_bounds, unused_qualifications)]
        const _: () = { #(#parts)* };
    }
}

/// The type of what a step returns when it succeeds; of one that takes a `Batch`, what it answers for each input.
pub(crate) fn value_type(krate: &Krate, model: &Model) -> Type {
    if let (Some(_), Some(answer)) = (model.batch(), model.answer()) {
        return answer.clone();
    }
    match &model.returned {
        Returned::Result { value, .. } => (**value).clone(),
        Returned::Alias(ty) => Type::Verbatim({
            let place = ty.span();
            let alias = krate.private("StepReturn", place);
            quote_spanned!(place=> <#ty as #alias>::Value)
        }),
        Returned::Other(_) => Type::Verbatim(quote!(())),
    }
}

/// What a compensation takes of the step's output.
pub(crate) fn undone_type(krate: &Krate, model: &Model) -> TokenStream {
    if let Some(ty) = model.undone_output() {
        quote!(#krate::__private::Given<#ty>)
    } else {
        quote!(#krate::__private::Ignored)
    }
}

fn step(model: &Model, options: &Options, generics: &Generics<'_>) -> TokenStream {
    let krate = &options.krate;
    let (parameters, bounds) = generics.without_store();
    let this = generics.this();
    let input = model.input();
    let output = value_type(krate, model);
    let judged = judged_output(model);
    let (input_codec, output_codec) = if let Some(contract) = &options.implements {
        let input_codec = input.map(|ty| checks::implemented_input(krate, contract, ty));
        (input_codec, checks::implemented_output(krate, contract, &output, judged))
    } else {
        (input.map(|ty| checks::codec(krate, ty, ty.span())), checks::codec(krate, &output, judged))
    };
    let (input_type, output_type) = (assigned("Input", &input, input.span()), assigned("Output", &output, judged));
    let needs = needs(krate, model);
    let name = name(model, options);
    let settings = settings(krate, options);
    let undo = options.compensate.as_ref().map(|path| {
        let undo = checks::undo(krate, path, &generics.compensation(path));
        quote!(const UNDO: #krate::__private::Option<#krate::__private::UndoOf<Self>> = #undo;)
    });
    let lock = options.lock.as_ref().map(|entities| {
        let lock = checks::lock(krate, entities);
        quote!(const LOCK: #krate::__private::Option<#krate::__private::EntitiesOf<Self>> = #lock;)
    });
    let resolve = options.resolve.as_ref().map(|path| {
        let resolve = checks::resolve(krate, path, &generics.resolution(path));
        quote!(const RESOLVE: #krate::__private::Option<#krate::__private::ResolveOf<Self>> = #resolve;)
    });
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl #parameters #krate::__private::Step for #this #bounds {
            #input_type
            #output_type
            #needs
            const NAME: &'static str = #name;
            const OPTIONS: #krate::__private::StepOptions = #settings;
            const INPUT: #krate::__private::Codec<Self::Input> = #input_codec;
            const OUTPUT: #krate::__private::Codec<Self::Output> = #output_codec;
            #lock
            #undo
            #resolve
        }
    }
}

/// The type of a step's input or output. One that is private on a public step is reported where the type is written.
fn assigned(name: &str, ty: &impl ToTokens, place: Span) -> TokenStream {
    let name = Ident::new(name, place);
    quote_spanned!(place=> type #name = #ty;)
}

/// The name under which the step is recorded.
fn name(model: &Model, options: &Options) -> TokenStream {
    let krate = &options.krate;
    if let Some(contract) = &options.implements {
        let declared = checks::declared(krate, contract);
        return quote!(#declared.name());
    }
    let name = validate::name_of_step(model, options);
    quote!(#name)
}

/// The contract that the step implements, which is named here alone.
pub(crate) fn hosted(options: &Options, generics: &Generics<'_>) -> TokenStream {
    let Some(contract) = &options.implements else { return TokenStream::new() };
    let krate = &options.krate;
    let (parameters, bounds) = generics.without_store();
    let this = generics.this();
    let declared = checks::declared(krate, contract);
    let undone = checks::compensated(krate, contract, options.compensate.as_ref());
    quote! {
        #[automatically_derived]
        impl #parameters #krate::__private::Hosted for #this #bounds {
            const SERVICE: &'static str = #declared.service();
            const UNDONE: () = #undone;
        }
    }
}

fn handler(model: &Model, options: &Options, generics: &Generics<'_>) -> TokenStream {
    let krate = &options.krate;
    let (store, parameters, bounds) = generics.with_store(krate);
    let this = generics.this();
    let body = body(model, krate, generics);
    let run = if model.batch().is_some() {
        quote!(#krate::__private::Run::<#store, Self>::Batch(|__conn, __args, __input| #body))
    } else if model.connection().is_some() {
        quote!(#krate::__private::Run::<#store, Self>::Transaction(|__conn, __args, __input| #body))
    } else {
        quote!(#krate::__private::Run::<#store, Self>::External(|__args, __input| #body))
    };
    let compensated = options.compensate.as_ref().map(|path| {
        let alias = generics.compensation(path);
        let bound = krate::at(&quote!(#store: #krate::__private::RunsCompensation<#alias>), path.span());
        let undo = quote! {
            fn undo() -> #krate::__private::Undo<#store, Self> {
                <#store as #krate::__private::RunsCompensation<#alias>>::undo::<Self>()
            }
        };
        (bound, undo)
    });
    let (bound, undo) = compensated.unzip();
    quote! {
        #[automatically_derived]
        impl #parameters #krate::__private::Handler<#store> for #this #bounds #bound {
            fn handler() -> #krate::__private::Run<#store, Self> {
                #run
            }
            #undo
        }
    }
}

/// The compensation and the resolution under names of their own, because each is named once.
fn aliases(options: &Options, generics: &Generics<'_>) -> TokenStream {
    let compensation = options.compensate.as_ref().map(|path| (generics.compensation(path), path));
    let resolution = options.resolve.as_ref().map(|path| (generics.resolution(path), path));
    let aliases = compensation.into_iter().chain(resolution).map(|(alias, path)| alias_of(&alias, path));
    quote!(#(#aliases)*)
}

/// A path under another name. Where only a function has that name, because its attribute was forgotten, the import finds no
/// type, and the type of the glob import stands in: it has the function's name, and is neither a compensation nor a resolution.
fn alias_of(alias: &TokenStream, path: &Path) -> TokenStream {
    let Some(function) = path.get_ident() else { return quote!(type #alias = #path;) };
    let module = Ident::new(&format!("{alias}_of_a_function"), Span::mixed_site());
    quote! {
        #[allow(non_snake_case)]
        mod #module {
            mod unannotated {
                pub struct #function {}
            }
            #[allow(unused_imports)]
            pub use self::unannotated::#function as #alias;
        }
        #[allow(unused_imports, clippy::wildcard_imports)]
        use #module::*;
        #[allow(unused_imports)]
        use #path as #alias;
    }
}

fn compensation(model: &Model, options: &Options, generics: &Generics<'_>) -> TokenStream {
    let krate = &options.krate;
    let (parameters, bounds) = generics.without_store();
    let this = generics.this();
    let input = model.input();
    let output = undone_type(krate, model);
    let needs = needs(krate, model);
    let settings = settings(krate, options);
    quote! {
        #[automatically_derived]
        impl #parameters #krate::__private::Compensation for #this #bounds {
            type Input = #input;
            type Output = #output;
            #needs
            const OPTIONS: #krate::__private::StepOptions = #settings;
        }
    }
}

fn compensation_handler(model: &Model, options: &Options, generics: &Generics<'_>) -> TokenStream {
    let krate = &options.krate;
    let (store, parameters, bounds) = generics.with_store(krate);
    let this = generics.this();
    let body = body(model, krate, generics);
    let run = match model.connection() {
        Some(_) => {
            quote!(#krate::__private::Compensate::<#store, Self>::Transaction(|__conn, __args, __input, __output| #body))
        }
        None => {
            quote!(#krate::__private::Compensate::<#store, Self>::External(|__args, __input, __output| #body))
        }
    };
    quote! {
        #[automatically_derived]
        impl #parameters #krate::__private::CompensationHandler<#store> for #this #bounds {
            fn handler() -> #krate::__private::Compensate<#store, Self> {
                #run
            }
        }
    }
}

/// What a resolution finds: the `T` of the `Resolved<T>` that it returns.
pub(crate) fn found_type(krate: &Krate, model: &Model) -> TokenStream {
    match (model.found(), &model.returned) {
        (Some(found), _) => quote!(#found),
        (None, Returned::Alias(_)) => checks::found(krate, &value_type(krate, model), judged_output(model)),
        // That it is no `Resolved` was reported; most likely only that word is missing.
        (None, Returned::Result { value, .. }) => quote!(#value),
        (None, Returned::Other(_)) => quote!(()),
    }
}

fn resolution(model: &Model, options: &Options, generics: &Generics<'_>) -> TokenStream {
    let krate = &options.krate;
    let (parameters, bounds) = generics.without_store();
    let this = generics.this();
    let input = model.input();
    let found = found_type(krate, model);
    let needs = needs(krate, model);
    let settings = settings(krate, options);
    let body = body(model, krate, generics);
    quote! {
        #[automatically_derived]
        impl #parameters #krate::__private::Resolution for #this #bounds {
            type Input = #input;
            type Output = #found;
            #needs
            const OPTIONS: #krate::__private::StepOptions = #settings;
            fn resolver() -> #krate::__private::ResolveFn<Self> {
                |__args, __input| #body
            }
        }
    }
}

/// Reads the parameters and calls the function. A future that is not `Send` is reported at its name.
fn body(model: &Model, krate: &Krate, generics: &Generics<'_>) -> TokenStream {
    let place = model.ident().span();
    let finished = checks::finish(krate, &model.returned, &call(model, krate, generics));
    let pin = krate.private("Box", place);
    quote_spanned!(place=> #pin::pin(async move { #finished }))
}

fn call(model: &Model, krate: &Krate, generics: &Generics<'_>) -> TokenStream {
    let function = generics.function();
    let mut values = 0..;
    let arguments = model.parameters.iter().map(|parameter| match parameter.role {
        Role::Connection if generics.has_known_connection() => {
            let ty = &parameter.ty;
            quote!(#krate::__private::ConnectionIs::<#ty>::connection(__conn))
        }
        Role::Connection => quote!(__conn),
        Role::Context => quote!(__args.ctx),
        Role::Read => checks::read(krate, &parameter.ty),
        _ if values.next() == Some(0) => quote!(__input),
        _ => quote!(__output.0),
    });
    quote!(#function(#(#arguments),*).await)
}

/// What the parameters need, of a function that has such parameters.
fn needs(krate: &Krate, model: &Model) -> Option<TokenStream> {
    let mut needs = model.in_role(Role::Read).map(|parameter| checks::needs(krate, &parameter.ty)).peekable();
    needs.peek()?;
    Some(quote!(const NEEDS: fn(&mut #krate::__private::Needs) = |__needs| { #(#needs;)* };))
}

pub(crate) fn settings(krate: &Krate, options: &Options) -> TokenStream {
    let attempts = options.attempts.map(|attempts| quote!(.attempts(#attempts)));
    let base = options.base.map(|(base, _)| setting("base", base, krate));
    let cap = options.cap.map(|(cap, _)| setting("cap", cap, krate));
    let timeout = options.timeout.map(|(timeout, _)| setting("timeout", timeout, krate));
    let give_up_after = options.give_up_after.map(|(limit, _)| setting("give_up_after", limit, krate));
    let on_exhausted = options.on_exhausted.as_ref().map(|(exhausted, _)| {
        let exhausted = match exhausted {
            Exhausted::Stuck => quote!(Stuck),
            Exhausted::Compensate => quote!(Compensate),
        };
        quote!(.on_exhausted(#krate::__private::OnExhausted::#exhausted))
    });
    let ungrouped = options.group.as_ref().filter(|group| !group.value).map(|_| quote!(.ungrouped()));
    let exclusive = options.exclusive.as_ref().map(|_| quote!(.exclusive()));
    let max_concurrent = options.max_concurrent.map(|calls| quote!(.max_concurrent(#calls)));
    let none = options.no_compensation.as_ref().map(|_| quote!(.no_compensation()));
    quote!(#krate::__private::StepOptions::DEFAULT #attempts #base #cap #timeout #give_up_after #on_exhausted #ungrouped #exclusive
        #max_concurrent #none)
}

fn setting(name: &str, duration: Duration, krate: &Krate) -> TokenStream {
    let setter = quote::format_ident!("{name}");
    let millis = duration.as_millis() as u64;
    quote!(.#setter(#krate::__private::Duration::from_millis(#millis)))
}

pub(crate) fn judged_output(model: &Model) -> Span {
    if let (Some(_), Some(answer)) = (model.batch(), model.answer()) {
        return answer.span();
    }
    match &model.returned {
        Returned::Result { value, .. } => value.span(),
        Returned::Alias(ty) => ty.span(),
        Returned::Other(written) => written.span(),
    }
}
