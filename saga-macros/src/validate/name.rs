//! The name of a step, and the form that it has.

use syn::ext::IdentExt;

use crate::{args::Options, errors::Errors, function::Kind, model::Model, rule::Rule};

/// The longest name of a step or of a service.
pub(super) const NAME_BYTES_MAX: usize = 40;
/// It ends the key of a compensation, so no step has it.
const RESERVED: &str = "undo";

/// The name under which the step is recorded.
pub(crate) fn name_of_step(model: &Model, given: &Options) -> String {
    match &given.name {
        Some(name) => name.value(),
        None => model.ident().unraw().to_string().replace('_', "-"),
    }
}

/// Checks the name of a step.
pub(super) fn check(model: &Model, given: &Options, errors: &mut Errors) {
    if model.kind != Kind::Step || given.implements.is_some() {
        return;
    }
    let name = name_of_step(model, given);
    let (rule, message) = if !has_form_of_a_name(&name) {
        let message = format!(
            "a step's name has 1 to {NAME_BYTES_MAX} bytes of `a` to `z`, `0` to `9` and `-`, because keys are made of it"
        );
        (Rule::NameForm, message)
    } else if name == RESERVED {
        (Rule::NameReserved, format!("`{RESERVED}` ends the keys of compensations, so no step has this name"))
    } else {
        return;
    };
    match &given.name {
        Some(literal) => errors.at(rule, literal, message),
        None => errors.at(rule, model.ident(), format!("{message}\nhelp: give it one with `name = \"..\"`")),
    }
}

/// Whether keys and addresses can be made of the text.
pub(super) fn has_form_of_a_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(allowed)
}
