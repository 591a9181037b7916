//! The attributes `#[saga_step]` and `#[saga_compensation]` of `saga-core`, which re-exports them.
//!
//! An attribute goes through four stages: read the options and the function (`args`, `function`), reduce them to a
//! `model`, `validate` it, and `expand` it, or emit a `fallback` that keeps its uses from complaining as well. The function
//! itself is always emitted unchanged.

mod args;
#[cfg(test)]
mod cases;
mod checks;
mod duration;
mod errors;
mod expand;
mod fallback;
mod function;
mod generics;
mod krate;
mod model;
mod rule;
mod validate;

use proc_macro::TokenStream;
use quote::quote;

use crate::{
    args::Options,
    errors::Errors,
    function::Function,
    model::{Kind, Model},
};

#[doc = include_str!("../docs/saga_step.md")]
#[proc_macro_attribute]
pub fn saga_step(options: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::Step, options.into(), item.into()).into()
}

#[doc = include_str!("../docs/saga_compensation.md")]
#[proc_macro_attribute]
pub fn saga_compensation(options: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::Compensation, options.into(), item.into()).into()
}

/// The function as it was written, then what is generated for it, then every mistake.
fn attribute(
    kind: Kind,
    options: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let mut errors = Errors::new();
    let generated = generate(kind, options, &item, &mut errors);
    let kept = function::kept(item);
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
) -> Option<proc_macro2::TokenStream> {
    let options = Options::read(kind, options, errors);
    let function = Function::read(kind, item, errors)?;
    let model = Model::new(kind, &function);
    let sound = validate::signature(&model, errors);
    validate::options(&model, &options, errors);
    Some(if sound { expand::expand(&model, &options) } else { fallback::fallback(&model, &options) })
}
