//! The semantic locks that a command carries to the host of its step.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::engine::instance::SagaInstance;
use crate::machine::held_locks;
use crate::saga::Definition;
use crate::step::NeededOutput;
use crate::store::{Headers, Store};

/// What a command carries instead of locks that are longer than any transport would take: most hosts do not read them, and one that does
/// knows from it why they are missing.
const LEFT_OUT: &str = "{}";

/// The semantic locks that the saga has, as the header of its commands. Their outputs are in memory where a command is sent.
pub(super) fn locks_of<S: Store>(saga: &SagaInstance<S>) -> Option<String> {
    if !saga.definition.takes_locks {
        return None;
    }
    let held = held_locks(&saga.definition.shape, &saga.state).into_iter();
    let names = held.map(|step| saga.definition.steps[step].name);
    let locks: BTreeMap<&str, &RawValue> =
        names.filter_map(|name| Some((name, serde_json::from_slice(saga.outputs.get(name)?).ok()?))).collect();
    // An object of texts and JSON always encodes.
    let text = (!locks.is_empty()).then(|| serde_json::to_string(&locks).unwrap_or_default());
    text.map(|text| if text.len() <= Headers::LOCKS_BYTES_MAX { text } else { LEFT_OUT.to_owned() })
}

/// The locks of a command that the hosted step reads, as JSON, by their names.
pub(crate) fn carried_locks<S: Store>(
    definition: &Definition<S>,
    header: Option<&str>,
) -> Result<Vec<(String, String)>, String> {
    let Some(header) = header else { return Ok(Vec::new()) };
    let locks: BTreeMap<&str, &RawValue> =
        serde_json::from_str(header).map_err(|error| format!("its header `saga-locks`: {error}"))?;
    let reads = needed(definition).filter_map(|needed| locks.get_key_value(needed.step));
    Ok(reads.map(|(name, lock)| ((*name).to_owned(), lock.get().to_owned())).collect())
}

/// Why the hosted step cannot run with these locks: it takes one that the command does not carry.
pub(crate) fn missing_lock<S: Store>(
    definition: &Definition<S>,
    header: Option<&str>,
    carried: &[(String, String)],
) -> Option<String> {
    let is_there = |needed: &NeededOutput| carried.iter().any(|(name, _)| name == needed.step);
    let missing = needed(definition).find(|needed| !needed.is_optional && !is_there(needed))?;
    let (step, lock, bytes_max) = (definition.steps[0].name, missing.step, Headers::LOCKS_BYTES_MAX);
    let why = if header == Some(LEFT_OUT) {
        format!(
            "carries none, since those of its saga have more than {bytes_max} bytes together; let the saga lock fewer entities, or shorter \
             ids"
        )
    } else {
        "carries none of that name; let the saga take it before the step".to_owned()
    };
    Some(format!(
        "its header `saga-locks`: `{step}` takes the semantic lock `{lock}`, and the command {why}, or let the step take an `Option`"
    ))
}

/// The semantic locks that the hosted step reads.
fn needed<S: Store>(definition: &Definition<S>) -> impl Iterator<Item = &NeededOutput> {
    definition.steps[0].needs.outputs.iter().filter(|needed| needed.is_lock)
}
