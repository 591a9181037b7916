//! Another input for a step that is stuck.

use std::fmt::Write as _;

use crate::engine::admin::admin_context::{AdminContext, refused};
use crate::engine::admin::audit::{AuditEntry, ReplacedInput};
use crate::engine::context::RuntimeError;
use crate::engine::instance::SagaInstance;
use crate::engine::message::{check_value, request_hash};
use crate::key::Key;
use crate::machine::Effect;
use crate::store::Store;

/// A sub-saga that was started keeps the input that it was started with.
pub(in crate::engine::admin) async fn check_not_started<S: Store>(
    ctx: &AdminContext<S>,
    key: &Key,
    saga: &SagaInstance<S>,
) -> Result<(), RuntimeError> {
    let stuck = saga.state.stuck.as_ref().map(|stuck| stuck.step);
    let Some(step) = stuck.filter(|&step| saga.definition.shape.is_child(step)) else { return Ok(()) };
    let name = saga.step(step).name;
    let child = key.hosted(name);
    match ctx.tenant_store.store.saga(&ctx.tenant_store.tenant, &child).await? {
        None => Ok(()),
        Some(_) => Err(refused(
            key,
            format!(
                "the step `{name}` cannot have another input: the saga {child} was started with the input that it had; \
                 skip it, or restart the saga"
            ),
        )),
    }
}

/// Gives the stuck step this input, and notes the hashes of the old and the new one in the audit entry.
pub(in crate::engine::admin) fn replace_input<S: Store>(
    key: &Key,
    saga: &mut SagaInstance<S>,
    input: Vec<u8>,
    entry: &mut AuditEntry,
) -> Result<(), RuntimeError> {
    let Some(stuck) = saga.state.stuck.clone() else { return Ok(()) };
    let (index, step) = (stuck.step, saga.step(stuck.step));
    let name = saga.doing(index);
    let problem = if stuck.undo {
        Some("what is stuck is its undo, which gets what the step had".to_owned())
    } else if saga.state.base(index) != index || step.check_list.is_some() {
        Some("its input stands in a list; skip it, or restart the saga".to_owned())
    } else if matches!(saga.definition.shape.effect(&saga.state, index), Effect::Remote { .. }) {
        Some("another service knows its key with the input that it had; skip it, or restart the saga".to_owned())
    } else if saga.state.steps[index].in_doubt {
        Some("it may have happened with the input that it had, which its undo needs; have it tried again as it is, or skip it".to_owned())
    } else {
        check_value(step.check_input, &input).err().map(|problem| format!("this is no input of it: {problem}"))
    };
    if let Some(problem) = problem {
        return Err(refused(key, format!("the step `{name}` cannot have another input: {problem}")));
    }
    let (old, new) = (hex(&request_hash(saga.input_of(index))), hex(&request_hash(&input)));
    entry.input = Some(ReplacedInput { step: name.to_string(), old, new });
    saga.inputs.set(index, input.into());
    Ok(())
}

/// Bytes in hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing into a string never fails.
        _ = write!(text, "{byte:02x}");
    }
    text
}
