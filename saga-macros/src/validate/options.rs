//! What the options may say, together and for this signature.

use crate::{
    args::Options,
    errors::Errors,
    function::Kind,
    model::{Model, Role, is_own_lock},
    rule::Rule,
};

use super::{batch, contract, name};

/// Checks the options against each other and against the signature. The function is expanded all the same.
pub(crate) fn check(model: &Model, given: &Options, errors: &mut Errors) {
    name::check(model, given, errors);
    compensates_or_not(given, errors);
    has_time(given, errors);
    has_time_for_a_retry(given, errors);
    limits_what_is_exhausted(given, errors);
    cap_covers_base(given, errors);
    groups_transactions(model, given, errors);
    resolves_calls(model, given, errors);
    excludes_calls(model, given, errors);
    has_the_lock_that_it_takes(model, given, errors);
    batch::check_options(model, given, errors);
    contract::implementation(model, given, errors);
}

/// Checks the options of a declaration without a body. What is generated for it is the same.
pub(crate) fn check_contract(model: &Model, given: &Options, errors: &mut Errors) {
    name::check(model, given, errors);
    contract::declaration(given, errors);
}

fn compensates_or_not(given: &Options, errors: &mut Errors) {
    if let (Some(_), Some(flag)) = (&given.compensate, &given.no_compensation) {
        let message =
            "this says that the step needs no compensation, but `compensate` names one\nhelp: keep one of the two";
        errors.at(Rule::CompensateAndNone, flag, message);
    }
}

fn has_time(given: &Options, errors: &mut Errors) {
    if let Some((duration, span)) = given.timeout
        && duration.is_zero()
    {
        let message =
            "a call that may take no time never succeeds\nhelp: write how long it may take: `timeout = \"10s\"`";
        errors.at_span(Rule::ZeroTimeout, span, message);
    }
}

fn has_time_for_a_retry(given: &Options, errors: &mut Errors) {
    if let Some((duration, span)) = given.give_up_after
        && duration.is_zero()
    {
        let message = "without any time there is no second attempt\n\
             help: write how long it may be tried in all: `give_up_after = \"10m\"`, or that it is tried once: `retry(attempts = 1)`";
        errors.at_span(Rule::ZeroGiveUp, span, message);
    }
}

fn limits_what_is_exhausted(given: &Options, errors: &mut Errors) {
    if let (Some((_, option)), None, None) = (&given.on_exhausted, &given.attempts, &given.give_up_after) {
        let message = "`on_exhausted` says what follows the last attempt, and this step is attempted without a limit\n\
             help: set a limit with `retry(attempts = 8)` or `give_up_after = \"10m\"`, or leave it out";
        errors.at(Rule::ExhaustedWithoutLimit, option, message);
    }
}

fn cap_covers_base(given: &Options, errors: &mut Errors) {
    if let (Some((base, _)), Some((cap, span))) = (given.base, given.cap)
        && cap < base
    {
        let message = "`cap` is the longest wait and `base` the first one, so `cap` is not below `base`";
        errors.at_span(Rule::CapBelowBase, span, message);
    }
}

fn groups_transactions(model: &Model, given: &Options, errors: &mut Errors) {
    if let (Some(group), None) = (&given.group, model.connection()) {
        let message = format!(
            "`group` is about sharing a transaction, and this {} has none: it takes no `&mut` connection\nhelp: leave it out",
            model.kind
        );
        errors.at(Rule::GroupWithoutTransaction, group, message);
    }
}

fn resolves_calls(model: &Model, given: &Options, errors: &mut Errors) {
    if let (Some(path), Some(_)) = (&given.resolve, model.connection()) {
        let message = "`resolve` asks another side what became of a call, and this step makes none: \
             it runs in a transaction, and its record says whether that was committed\nhelp: leave it out";
        errors.at(Rule::ResolveOfTransaction, path, message);
    }
}

fn excludes_calls(model: &Model, given: &Options, errors: &mut Errors) {
    if let (Some(flag), Some(_)) = (&given.exclusive, model.connection()) {
        let message = format!(
            "`exclusive` keeps others from making the same call meanwhile, and this {} makes none: \
             while its transaction lasts, no other process has its command\nhelp: leave it out",
            model.kind
        );
        errors.at(Rule::ExclusiveInTransaction, flag, message);
    }
}

fn has_the_lock_that_it_takes(model: &Model, given: &Options, errors: &mut Errors) {
    if model.kind != Kind::Step || given.lock.is_some() || model.batch().is_some() {
        return;
    }
    for locked in model.in_role(Role::Read).filter(|read| is_own_lock(&read.ty)) {
        let message = "this step has no lock that it could take\n\
             help: say what it locks: `lock = |input| Entity::new(\"account\", &input.account)`; for a semantic lock of the saga, \
             name it: `Locked<Credit>`";
        errors.at(Rule::LockedWithoutLock, &locked.written, message);
    }
}
