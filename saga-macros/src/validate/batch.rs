//! A step that takes a `Batch`.

use crate::{
    args::Options,
    errors::Errors,
    function::Kind,
    model::{Model, Returned, Role, is_output, is_own_lock, text_of},
    rule::Rule,
};

/// Checks the signature of a step that takes a `Batch`, and that no other function takes one or returns `BatchResults`.
pub(super) fn check(model: &Model, errors: &mut Errors) {
    if model.kind != Kind::Step {
        is_of_one(model, errors);
    } else if model.batch().is_none() {
        gives_no_answers(model, errors);
    } else {
        runs_in_a_transaction(model, errors);
        takes_no_context(model, errors);
        takes_no_output(model, errors);
        takes_no_lock(model, errors);
        gives_answers(model, errors);
    }
}

/// Checks that a contract takes one input.
pub(super) fn check_contract(model: &Model, errors: &mut Errors) {
    if let Some(batch) = model.batch() {
        let message = format!(
            "a contract says what one saga sends; whether its host takes many at once is the host's matter\n\
             help: write `{}` here, and `Batch<{0}>` in the function that implements the contract",
            text_of(&batch.ty)
        );
        errors.at(Rule::BatchInContract, &batch.written, message);
    }
}

/// Checks the options of a step that takes a `Batch`.
pub(super) fn check_options(model: &Model, given: &Options, errors: &mut Errors) {
    if let (Some(_), Some(group)) = (model.batch(), given.group.as_ref().filter(|group| !group.value)) {
        let message = "`group = false` gives each call a transaction of its own, and a batch is made of calls that share one\n\
                       help: leave it out, or take one input in place of the `Batch`";
        errors.at(Rule::BatchUngrouped, group, message);
    }
}

fn is_of_one(model: &Model, errors: &mut Errors) {
    for batch in model.values().filter(|value| value.is_batch) {
        let ty = text_of(&batch.ty);
        let message = if model.kind == Kind::Compensation {
            format!(
                "a compensation undoes the step of one saga\nhelp: write `{ty}`; its calls still share transactions"
            )
        } else {
            format!("a resolution asks for the step of one saga\nhelp: write `{ty}`")
        };
        errors.at(Rule::BatchInCompensation, &batch.written, message);
    }
}

fn runs_in_a_transaction(model: &Model, errors: &mut Errors) {
    if let (Some(batch), None) = (model.batch(), model.connection()) {
        let message = "a step that takes a `Batch` runs in a transaction, which its inputs share: outside of one, nothing could take \
                       back what a failed call did for some of them\n\
                       help: take the connection, as in `tx: &mut PgConnection`; a step that calls the outside takes one input";
        errors.at(Rule::BatchWithoutTransaction, &batch.written, message);
    }
}

fn takes_no_context(model: &Model, errors: &mut Errors) {
    for context in model.in_role(Role::Context) {
        let message = "each input of a `Batch` has a context of its own\n\
                       help: leave this out, and ask the batch: `orders.keys()`, `orders.contexts()`, `orders.map_each_with(|ctx, order| ..)`";
        errors.at(Rule::BatchContext, &context.written, message);
    }
}

fn takes_no_output(model: &Model, errors: &mut Errors) {
    for output in model.in_role(Role::Read).filter(|read| is_output(&read.ty)) {
        let message = "each input of a `Batch` is of another saga, whose earlier steps returned something of their own\n\
                       help: make it a part of the input: `.step_from::<this_step, _>(|input: &Order, Output(output): Output<earlier_step>| ..)`";
        errors.at(Rule::BatchOutput, &output.written, message);
    }
}

fn takes_no_lock(model: &Model, errors: &mut Errors) {
    for locked in model.in_role(Role::Read).filter(|read| is_own_lock(&read.ty)) {
        let message = "each input of a `Batch` has locks of its own\n\
                       help: leave this out, and ask the contexts: `orders.map_each_with(|ctx, order| .. ctx.locked() ..)`";
        errors.at(Rule::BatchLocked, &locked.written, message);
    }
}

fn gives_answers(model: &Model, errors: &mut Errors) {
    let (written, answers) = match &model.returned {
        _ if model.answer().is_some() => return,
        Returned::Other(_) => return,
        Returned::Result { value, error } => {
            (value, format!("Result<BatchResults<{}>, {}>", text_of(value), text_of(error)))
        }
        // What an alias does not show, the attribute does not know.
        Returned::Alias(ty) => {
            (ty, "Result<BatchResults<..>, StepError>` or an alias that takes `BatchResults<..>".to_owned())
        }
    };
    let message = format!(
        "a step that takes a `Batch` returns one answer for each input\n\
         help: write `{answers}`, and end with `Ok(batch.map_each(|input| ..))`"
    );
    errors.at(Rule::BatchReturn, written, message);
}

fn gives_no_answers(model: &Model, errors: &mut Errors) {
    if let (Some(answer), Returned::Result { value: written, .. } | Returned::Alias(written)) =
        (model.answer(), &model.returned)
    {
        let message = format!(
            "`BatchResults` are what a step returns that takes a `Batch`\n\
             help: take `Batch<..>` as the input, or return `{}`",
            text_of(answer)
        );
        errors.at(Rule::AnswersWithoutBatch, written, message);
    }
}
