//! What a step or a compensation may take.

use quote::ToTokens;
use syn::{FnArg, PatType, Receiver, Type};

use crate::{
    errors::Errors,
    function::Kind,
    model::{Model, Parameter, Role, name_of, text_of},
    output_of_type::type_as_step,
    rule::Rule,
};

/// As many `State` and `Output` parameters as the core has tuples for.
const READS_MAX: usize = 12;

pub(super) fn check(model: &Model, errors: &mut Errors) {
    is_in_every_build(model, errors);
    for parameter in &model.parameters {
        has_a_known_form(model, parameter, errors);
        has_no_impl_trait(model, parameter, errors);
        names_no_lifetime(model, parameter, errors);
    }
    has_one_connection(model, errors);
    resolution_has_no_connection(model, errors);
    has_one_context(model, errors);
    has_its_values(model, errors);
    reads_not_too_much(model, errors);
}

/// Checks what a contract takes: the input, and nothing that only the host has.
pub(super) fn check_contract(model: &Model, errors: &mut Errors) {
    is_in_every_build(model, errors);
    for parameter in &model.parameters {
        if matches!(parameter.role, Role::Value | Role::ValueByReference | Role::Receiver) {
            has_a_known_form(model, parameter, errors);
            has_no_impl_trait(model, parameter, errors);
            names_no_lifetime(model, parameter, errors);
        } else {
            let message = "a contract takes the step's input alone: the rest is there where the step is hosted\n\
                           help: leave this out here, and take it in the function that implements the contract";
            errors.at(Rule::ContractParameter, &parameter.written, message);
        }
    }
    has_its_values(model, errors);
}

fn is_in_every_build(model: &Model, errors: &mut Errors) {
    for argument in &model.signature.inputs {
        let (FnArg::Typed(PatType { attrs, .. }) | FnArg::Receiver(Receiver { attrs, .. })) = argument;
        for condition in attrs.iter().filter(|attr| attr.path().is_ident("cfg")) {
            let message = format!(
                "a {} has the same parameters in each build\n\
                 help: write the function once for each case, and put `#[cfg(..)]` in front of each",
                model.kind,
            );
            errors.at(Rule::ParameterCfg, condition, message);
        }
    }
}

fn has_a_known_form(model: &Model, parameter: &Parameter, errors: &mut Errors) {
    let kind = model.kind;
    let text = text_of(&parameter.ty);
    let text = if parameter.is_batch { format!("Batch<{text}>") } else { text };
    match parameter.role {
        Role::Value | Role::Context => {}
        Role::Read => {
            if let Some(ty) = type_as_step(&parameter.ty) {
                let message = format!(
                    "`Output` and `Outputs` name the step whose output they read, and `{}` is a type\n\
                     help: write the name of the function that returned it, as in `Output<charge_card>`",
                    text_of(&ty)
                );
                errors.at(Rule::OutputOfType, ty, message);
            }
        }
        Role::Connection => is_a_connection(model, parameter, errors),
        Role::Receiver => {
            let message = format!(
                "a {kind} is a free function: the runtime has no `self` to give to it\n\
                 help: take what it needs as `State<T>`, and move the function out of the `impl` block"
            );
            errors.at(Rule::Receiver, &parameter.written, message);
        }
        Role::ContextInWrongForm => {
            let message = format!("a {kind} borrows its context\nhelp: write `&StepContext`");
            errors.at(Rule::ContextForm, &parameter.written, message);
        }
        Role::ReadByReference => {
            let message = format!("a {kind} takes this by value, as a copy of its own\nhelp: write `{text}`");
            errors.at(Rule::ReadByReference, &parameter.written, message);
        }
        Role::ConnectionByReference => {
            let message = format!("a {kind} borrows its connection mutably\nhelp: write `&mut {text}`");
            errors.at(Rule::ConnectionForm, &parameter.written, message);
        }
        Role::ValueByReference => {
            let message = format!(
                "a {kind} takes its input by value: it was read from the store for this call\nhelp: write `{text}`"
            );
            errors.at(Rule::InputByReference, &parameter.written, message);
        }
    }
}

fn is_a_connection(model: &Model, parameter: &Parameter, errors: &mut Errors) {
    if matches!(parameter.ty, Type::TraitObject(_)) {
        let message = format!(
            "the connection of a {} has one type\n\
             help: for a {0} that runs on several stores, write `&mut impl Trait`",
            model.kind,
        );
        errors.at(Rule::DynConnection, &parameter.written, message);
    } else if name_of(&parameter.ty).is_some_and(|name| name == "Transaction") {
        let message = format!(
            "a {} takes the connection: the transaction is the runtime's, which commits it together with the record that the {0} ran\n\
             help: write `&mut PgConnection`, `&mut rusqlite::Connection` or the connection of your store",
            model.kind,
        );
        errors.at(Rule::TransactionObject, &parameter.written, message);
    }
}

fn has_no_impl_trait(model: &Model, parameter: &Parameter, errors: &mut Errors) {
    let is_connection = parameter.role == Role::Connection && matches!(parameter.ty, Type::ImplTrait(_));
    if parameter.role == Role::Receiver || is_connection || !mentions_word(&parameter.ty, "impl") {
        return;
    }
    let message = format!(
        "a {} names the types that it takes\nhelp: name the type; `&mut impl Trait` is only for the connection",
        model.kind,
    );
    errors.at(Rule::ImplTrait, &parameter.written, message);
}

/// A lifetime that is a parameter of the function is reported there. A value or a state with `'static` borrows nothing of the
/// call.
fn names_no_lifetime(model: &Model, parameter: &Parameter, errors: &mut Errors) {
    let Some(lifetime) = lifetime_in(parameter) else {
        return;
    };
    let declared = model.signature.generics.lifetimes().any(|declared| declared.lifetime.ident == lifetime.ident);
    let owns_its_data = matches!(parameter.role, Role::Value | Role::Read) && lifetime.ident == "static";
    if declared || owns_its_data || lifetime.ident == "_" {
        return;
    }
    let message = format!(
        "a {} borrows nothing for longer than its call\nhelp: leave `{lifetime}` out, and take values that own their data",
        model.kind
    );
    errors.at(Rule::Lifetime, &parameter.written, message);
}

fn has_one_connection(model: &Model, errors: &mut Errors) {
    for second in model.in_role(Role::Connection).skip(1) {
        let message = format!(
            "a {} runs in one transaction: there is one `&mut` parameter\nhelp: take anything else as `State<T>`",
            model.kind
        );
        errors.at(Rule::TwoConnections, &second.written, message);
    }
}

fn resolution_has_no_connection(model: &Model, errors: &mut Errors) {
    if let (Kind::Resolution, Some(connection)) = (model.kind, model.in_role(Role::Connection).next()) {
        let message = "a resolution asks the other side, outside any transaction\n\
                       help: leave this out; what it needs of the application it takes as `State<T>`";
        errors.at(Rule::ResolutionInTransaction, &connection.written, message);
    }
}

fn has_one_context(model: &Model, errors: &mut Errors) {
    for second in model.in_role(Role::Context).skip(1) {
        let message = format!("a {} has one context\nhelp: leave one of the two out", model.kind);
        errors.at(Rule::TwoContexts, &second.written, message);
    }
}

fn has_its_values(model: &Model, errors: &mut Errors) {
    let values: Vec<_> = model.values().collect();
    match (model.kind, values.as_slice()) {
        (Kind::Step, []) => {
            let message = "a step takes the input of its saga, or what `step_from` makes of it, by value\n\
                           help: add a parameter such as `_order: Order`; where there is nothing to take, `_input: ()`";
            errors.at(Rule::NoInput, model.ident(), message);
        }
        (Kind::Compensation, []) => {
            let message = "a compensation takes the input of the step that it undoes, by value\n\
                           help: add a parameter such as `_order: Order`";
            errors.at(Rule::NoInput, model.ident(), message);
        }
        (Kind::Resolution, []) => {
            let message = "a resolution takes the input of the step that it asks about, by value\n\
                           help: add a parameter such as `_order: Order`";
            errors.at(Rule::NoInput, model.ident(), message);
        }
        (Kind::Resolution, [_, more @ ..]) => {
            for second in more {
                let message = "a resolution takes the step's input, and nothing more by value\n\
                               help: take anything else as `State<T>` or as `Output<step>`";
                errors.at(Rule::TwoInputs, &second.written, message);
            }
        }
        (Kind::Step, [_, more @ ..]) => {
            for second in more {
                let message = "a step has one input: the one by-value parameter besides `State` and `Output`\n\
                               help: put both into one struct, or take one of them as `State<T>` or as `Output<step>`";
                errors.at(Rule::TwoInputs, &second.written, message);
            }
        }
        (Kind::Compensation, values) => {
            for third in values.iter().skip(2) {
                let message = "a compensation takes the step's input, then the step's output, and nothing more by value\n\
                               help: take anything else as `State<T>` or as `Output<step>`";
                errors.at(Rule::ThreeValues, &third.written, message);
            }
        }
    }
}

fn reads_not_too_much(model: &Model, errors: &mut Errors) {
    if let Some(parameter) = model.in_role(Role::Read).nth(READS_MAX) {
        let message = format!(
            "a {} takes at most {READS_MAX} `State` and `Output` parameters\nhelp: put several states into one struct",
            model.kind
        );
        errors.at(Rule::TooManyReads, &parameter.written, message);
    }
}

fn mentions_word(tokens: &impl ToTokens, word: &str) -> bool {
    crate::generics::any_ident(&tokens.to_token_stream(), &|ident| ident == word)
}

/// The first lifetime that a parameter writes.
fn lifetime_in(parameter: &Parameter) -> Option<syn::Lifetime> {
    let mut tokens = parameter.written.clone().into_iter().peekable();
    while let Some(token) = tokens.next() {
        if matches!(&token, proc_macro2::TokenTree::Punct(punct) if punct.as_char() == '\'')
            && let Some(proc_macro2::TokenTree::Ident(ident)) = tokens.peek()
        {
            return Some(syn::Lifetime { apostrophe: token.span(), ident: ident.clone() });
        }
    }
    None
}
