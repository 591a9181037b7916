//! The form of the function: what kind it is, and what it returns.

use syn::{GenericParam, ReturnType, Safety, Type};

use crate::{
    errors::Errors,
    function::Kind,
    model::{Model, Returned, Role, text_of},
    rule::Rule,
};

use super::{batch, parameters};

/// Checks the signature. Without a mistake in it the function can be expanded.
pub(crate) fn check(model: &Model, errors: &mut Errors) -> bool {
    let before = errors.count();
    is_async(model, errors);
    has_no_qualifier(model, errors);
    has_only_type_parameters(model, errors);
    parameters::check(model, errors);
    batch::check(model, errors);
    returns_a_result(model, errors);
    compensation_returns_nothing(model, errors);
    resolution_says_what_became_of_it(model, errors);
    errors.count() == before
}

/// Checks the signature of a declaration without a body, the contract of a step that another service hosts.
pub(crate) fn check_contract(model: &Model, errors: &mut Errors) -> bool {
    let before = errors.count();
    is_async(model, errors);
    has_no_qualifier(model, errors);
    has_no_type_parameters(model, errors);
    parameters::check_contract(model, errors);
    batch::check_contract(model, errors);
    returns_a_result(model, errors);
    errors.count() == before
}

/// Reports that there is no body, where no service is named that hosts the step.
pub(crate) fn has_a_body(model: &Model, errors: &mut Errors) {
    let message = match model.kind {
        Kind::Step => {
            "a step needs a body, unless another service hosts it\n\
             help: write the code that the step runs, in braces, or who hosts it: `#[saga_step(service = \"payments\")]`"
        }
        Kind::Compensation => "a compensation needs a body\nhelp: write the code that the compensation runs, in braces",
        Kind::Resolution => "a resolution needs a body\nhelp: write the code that asks the other side, in braces",
    };
    errors.at(Rule::NoBody, &model.signature, message);
}

fn is_async(model: &Model, errors: &mut Errors) {
    if model.signature.asyncness.is_none() {
        let message = format!("a {} is an `async fn`\nhelp: write `async fn {}`", model.kind, model.ident());
        errors.at(Rule::NotAsync, model.signature.fn_token, message);
    }
}

fn has_no_qualifier(model: &Model, errors: &mut Errors) {
    let signature = &model.signature;
    let message = |word| format!("a {} is a plain `async fn`\nhelp: remove `{word}`", model.kind);
    if let Some(token) = &signature.constness {
        errors.at(Rule::Qualifier, token, message("const"));
    }
    if let Safety::Unsafe(token) = &signature.safety {
        errors.at(Rule::Qualifier, token, message("unsafe"));
    }
    if let Some(abi) = &signature.abi {
        errors.at(Rule::Qualifier, abi, message("extern"));
    }
}

fn has_only_type_parameters(model: &Model, errors: &mut Errors) {
    for parameter in &model.signature.generics.params {
        match parameter {
            GenericParam::Type(_) => {}
            GenericParam::Lifetime(lifetime) => {
                let message = format!(
                    "a {} has no lifetime parameters: what it takes is read from the store\n\
                     help: leave `{}` out, and take values that own their data",
                    model.kind, lifetime.lifetime
                );
                errors.at(Rule::Lifetime, lifetime, message);
            }
            GenericParam::Const(constant) => {
                let message = format!(
                    "a {} has no constant parameters\nhelp: make `{}` part of the input, or a `State`",
                    model.kind, constant.ident
                );
                errors.at(Rule::ConstParameter, constant, message);
            }
        }
    }
}

fn has_no_type_parameters(model: &Model, errors: &mut Errors) {
    has_only_type_parameters(model, errors);
    for parameter in model.signature.generics.type_params() {
        let message = format!(
            "a contract has no type parameters: both sides read and write the same types\n\
             help: write the type that `{}` stands for",
            parameter.ident
        );
        errors.at(Rule::ContractTypeParameter, parameter, message);
    }
}

fn returns_a_result(model: &Model, errors: &mut Errors) {
    let Returned::Other(written) = &model.returned else {
        return;
    };
    // Where `async` is missing, `impl Future` is that same mistake.
    if model.signature.asyncness.is_none()
        && matches!(written, ReturnType::Type(_, ty) if matches!(**ty, Type::ImplTrait(_)))
    {
        return;
    }
    let form = match model.kind {
        Kind::Step => "Result<T, StepError>",
        Kind::Compensation => "Result<(), StepError>",
        Kind::Resolution => "Result<Resolved<T>, StepError>",
    };
    let rule = format!("a {} returns `{form}`, or an alias of it whose name ends in `Result`", model.kind);
    match written {
        ReturnType::Default => {
            let value = if model.kind == Kind::Resolution { "Resolved<T>" } else { "()" };
            let message = format!("{rule}\nhelp: write `-> Result<{value}, StepError>`");
            errors.at(Rule::NotAResult, model.ident(), message);
        }
        ReturnType::Type(_, ty) => {
            let value = if model.kind == Kind::Compensation { "()".to_owned() } else { text_of(ty) };
            errors.at(Rule::NotAResult, ty, format!("{rule}\nhelp: write `Result<{value}, StepError>`"));
        }
    }
}

fn compensation_returns_nothing(model: &Model, errors: &mut Errors) {
    if let (Kind::Compensation, Returned::Result { value, .. }) = (model.kind, &model.returned)
        && !matches!(&**value, Type::Tuple(tuple) if tuple.elems.is_empty())
    {
        let message =
            "a compensation returns `Result<(), StepError>`: the runtime does not read what it gives\nhelp: write `()`";
        errors.at(Rule::CompensationReturnsValue, value, message);
    }
}

fn resolution_says_what_became_of_it(model: &Model, errors: &mut Errors) {
    if let (Kind::Resolution, None, Returned::Result { value, .. }) = (model.kind, model.found(), &model.returned) {
        let message = "a resolution says what became of a step\n\
                       help: return `Result<Resolved<T>, StepError>`, where the step returns `T`: `Resolved::Done(output)`, \
                       `Resolved::NotDone` or `Resolved::Pending`";
        errors.at(Rule::ResolutionReturn, value, message);
    }
}

/// Whether the function has a `self`, so that it stands where no type can be added beside it.
pub(crate) fn is_method(model: &Model) -> bool {
    model.in_role(Role::Receiver).next().is_some()
}
