//! What differs between how a saga ended and how it was to end.

use std::collections::BTreeMap;

use super::file::{End, SubEnd};

const REMEDY: &str = "read the stored form too, or give the changed steps another version and move sagas with \
     `Migration::step_with`";

/// How a saga ended otherwise than it did when the file was made. Which step of several branches comes first is chance.
pub(super) fn difference(expected: &End, ended: Result<End, String>, has_branches: bool) -> Option<String> {
    let ended = match ended {
        Ok(ended) => ended,
        Err(problem) => return Some(format!("{problem}; {REMEDY}")),
    };
    if ended.outcome != expected.outcome {
        return Some(format!("it ended {:?}, and was to end {:?}; {REMEDY}", ended.outcome, expected.outcome));
    }
    let of_it = |step: &str| format!("`{step}`");
    let other = steps(&expected.steps, &ended.steps, has_branches, of_it);
    let other = other.or_else(|| given(&expected.given, &ended.given, has_branches, of_it));
    other.or_else(|| {
        let mut subs = expected.sub_sagas.iter();
        subs.find_map(|(step, sub)| difference_of_sub(step, sub, ended.sub_sagas.get(step), has_branches))
    })
}

fn difference_of_sub(name: &str, expected: &SubEnd, ended: Option<&SubEnd>, has_branches: bool) -> Option<String> {
    let Some(ended) = ended else {
        let may_be_missing = has_branches && expected.status == "compensated";
        return (!may_be_missing).then(|| format!("`{name}` was to be begun as a saga, and was not"));
    };
    if ended.version != expected.version {
        // It was begun as another version, which has a file of its own.
        return None;
    }
    if ended.input != expected.input {
        return Some(format!("`{name}` is started with another input than before: its mapping has changed"));
    }
    if ended.status != expected.status {
        return Some(format!("the saga of `{name}` was to end {}, and is {}; {REMEDY}", expected.status, ended.status));
    }
    let of_it = |step: &str| format!("`{step}` of `{name}`");
    let other = steps(&expected.steps, &ended.steps, has_branches, of_it);
    other.or_else(|| given(&expected.given, &ended.given, has_branches, of_it))
}

fn steps(
    expected: &BTreeMap<String, String>,
    ended: &BTreeMap<String, String>,
    has_branches: bool,
    name: impl Fn(&str) -> String,
) -> Option<String> {
    let is_same = |was: &str, is: &str| was == is || (has_branches && stands_not(was) && stands_not(is));
    // Of a list only those items are listed of which there is something to see.
    let now = |step: &str| ended.get(step).map_or("ready", String::as_str);
    let (step, phase) = expected.iter().find(|(step, was)| !is_same(was, now(step)))?;
    Some(format!("{} was to end {phase}, and is {}", name(step), now(step)))
}

fn given(
    expected: &BTreeMap<String, String>,
    ended: &BTreeMap<String, String>,
    has_branches: bool,
    name: impl Fn(&str) -> String,
) -> Option<String> {
    let is_other = |(step, given): &(&String, &String)| match ended.get(*step) {
        Some(now) => now != *given,
        None => !has_branches,
    };
    let (step, _) = expected.iter().find(is_other)?;
    Some(format!("{} is given another input than before: its mapping has changed", name(step)))
}

/// Beside a step that rejects, one of another branch has begun or has not, as it happens. Either way nothing of it stands.
fn stands_not(phase: &str) -> bool {
    matches!(phase, "undone" | "cancelled" | "ready")
}
