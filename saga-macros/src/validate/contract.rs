//! A declaration without a body, and the function that implements it in the service that hosts the step.

use proc_macro2::Ident;

use crate::{
    args::Options,
    errors::Errors,
    model::{Model, Role, is_output, is_semantic_lock},
    rule::Rule,
};

use super::name::{NAME_BYTES_MAX, has_form_of_a_name};

/// What says how a step runs, which only its host decides.
const OF_THE_HOST: &[&str] = &[
    "compensate",
    "resolve",
    "retry",
    "timeout",
    "give_up_after",
    "group",
    "exclusive",
    "lock",
    "max_concurrent",
    "implements",
];

/// Checks the options of a declaration against each other.
pub(super) fn declaration(given: &Options, errors: &mut Errors) {
    names_its_service(given, errors);
    is_compensated_or_not(given, errors);
    for option in given.written.iter().filter(|option| OF_THE_HOST.contains(&option.to_string().as_str())) {
        leaves_to_the_host(option, errors);
    }
}

/// Checks the options of a function with a body.
pub(super) fn implementation(model: &Model, given: &Options, errors: &mut Errors) {
    if let Some(service) = &given.service {
        let message = format!(
            "a step that another service hosts has no body here\n\
             help: end the declaration with `;`; in the service `{}` itself, write `implements = ..` with the contract",
            service.value()
        );
        errors.at(Rule::ServiceAndBody, service, message);
    } else if let Some(compensated) = &given.compensated {
        let message = "`compensated` is what the contract of a step says: that its host can undo it\n\
                       help: name the function that undoes the step: `compensate = ..`";
        errors.at(Rule::CompensatedAndBody, compensated, message);
    }
    if given.implements.is_some() {
        takes_its_name(given, errors);
        takes_no_output(model, errors);
    }
}

fn names_its_service(given: &Options, errors: &mut Errors) {
    let Some(service) = given.service.as_ref().filter(|service| !has_form_of_a_name(&service.value())) else { return };
    let message = format!(
        "a service's name has 1 to {NAME_BYTES_MAX} bytes of `a` to `z`, `0` to `9` and `-`, because queues are named after it"
    );
    errors.at(Rule::ServiceForm, service, message);
}

fn is_compensated_or_not(given: &Options, errors: &mut Errors) {
    if let (Some(_), Some(flag)) = (&given.compensated, &given.no_compensation) {
        let message = "this says that the step needs no compensation, but `compensated` says that it has one\nhelp: keep one of the two";
        errors.at(Rule::CompensatedAndNone, flag, message);
    }
}

fn leaves_to_the_host(option: &Ident, errors: &mut Errors) {
    let remedy = match option.to_string().as_str() {
        "compensate" => "write `compensated` to say that its host can undo it",
        "implements" => "give the function a body, and leave `service` out",
        _ => "write it where the step is implemented",
    };
    let message = format!(
        "`{option}` is about a function with a body, and a contract has none: how the step runs is its host's matter\nhelp: {remedy}"
    );
    errors.at(Rule::ContractOption, option, message);
}

fn takes_its_name(given: &Options, errors: &mut Errors) {
    if let Some(name) = &given.name {
        let message = "a step that implements a contract has the contract's name\nhelp: leave `name` out";
        errors.at(Rule::ImplementsAndName, name, message);
    }
}

fn takes_no_output(model: &Model, errors: &mut Errors) {
    let is_brought = |ty| !is_output(ty) || is_semantic_lock(ty);
    for parameter in model.in_role(Role::Read).filter(|parameter| !is_brought(&parameter.ty)) {
        let message = "a command of another service brings the step's input, and no output of an earlier step\n\
                       help: make what the step needs a part of the contract's input";
        errors.at(Rule::ImplementsWithOutput, &parameter.written, message);
    }
}
