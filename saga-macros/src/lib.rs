#![doc = include_str!("../README.md")]
//!
//! # How it works
//! An attribute goes through four stages: read the options and the function (`args`, `function`), reduce them to a
//! `model`, `validate` it, and `expand` it, or emit a `fallback`, so that the uses of a faulty step cause no further errors. The
//! function itself is always emitted unchanged.

mod args;
#[cfg(test)]
mod cases;
mod checks;
mod contract;
mod duration;
mod errors;
mod expand;
mod fallback;
mod function;
mod generics;
mod krate;
mod model;
mod output_of_type;
mod rule;
mod validate;

use proc_macro::TokenStream;
use quote::quote;

use crate::{
    args::Options,
    errors::Errors,
    function::{Function, Kind},
    model::Model,
};

// The examples use saga-core, which depends on this crate. So `tests-build` runs them.
#[cfg_attr(not(doctest), doc = include_str!("../docs/saga_step.md"))]
#[proc_macro_attribute]
pub fn saga_step(options: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::Step, options.into(), item.into()).into()
}

#[cfg_attr(not(doctest), doc = include_str!("../docs/saga_compensation.md"))]
#[proc_macro_attribute]
pub fn saga_compensation(options: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::Compensation, options.into(), item.into()).into()
}

#[cfg_attr(not(doctest), doc = include_str!("../docs/saga_resolution.md"))]
#[proc_macro_attribute]
pub fn saga_resolution(options: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::Resolution, options.into(), item.into()).into()
}

/// What an attribute gives for the item under it.
enum Generated {
    /// It stands beside the function.
    Beside(proc_macro2::TokenStream),
    /// It stands for a declaration without a body.
    Instead(proc_macro2::TokenStream),
}

/// The function as it was written, then what is generated for it, then every mistake.
fn attribute(
    kind: Kind,
    options: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let mut errors = Errors::new();
    let (kept, generated) = match generate(kind, options, &item, &mut errors) {
        Some(Generated::Instead(generated)) => (None, Some(generated)),
        Some(Generated::Beside(generated)) => (Some(function::kept(item)), Some(generated)),
        None => (Some(function::kept(item)), None),
    };
    let errors = errors.into_tokens();
    let tokens = quote!(#kept #generated #errors);
    if std::env::var_os("SAGA_MACROS_DEBUG").is_some() {
        eprintln!("{tokens}");
    }
    tokens
}

fn generate(
    kind: Kind,
    options: proc_macro2::TokenStream,
    item: &proc_macro2::TokenStream,
    errors: &mut Errors,
) -> Option<Generated> {
    let options = Options::read(kind, options, errors);
    let function = Function::read(kind, item, errors)?;
    let model = Model::new(kind, &function);
    if !function.has_body() {
        return Some(declared(&model, &options, errors));
    }
    let sound = validate::signature(&model, errors);
    validate::options(&model, &options, errors);
    if sound {
        return Some(Generated::Beside(expand::expand(&model, &options)));
    }
    let beside = fallback::fallback(&model, &options);
    Some(match function.with_named_steps(&options.krate) {
        Some(function) => Generated::Instead(quote!(#function #beside)),
        None => Generated::Beside(beside),
    })
}

/// A function without a body: the contract of a step that another service hosts, or a mistake.
fn declared(model: &Model, options: &Options, errors: &mut Errors) -> Generated {
    if options.service.is_none() {
        validate::body(model, errors);
        return Generated::Beside(fallback::fallback(model, options));
    }
    let sound = validate::contract(model, errors);
    validate::options_of_contract(model, options, errors);
    Generated::Instead(contract::expand(model, options, sound))
}
