//! The differences between two shapes of a definition, in sentences.
//!
//! Shapes are compared as they are stored, so that a shape which another version of this program wrote can be compared too.

use serde_json::{Map, Value};

/// The differences of the later shape, in the order of its steps. Empty where the two are equal, or one of them is no shape.
pub fn differences(before: &str, after: &str) -> Vec<String> {
    let (Some(before), Some(after)) = (Steps::read(before), Steps::read(after)) else { return Vec::new() };
    let common = in_one_order(&before.names(), &after.names());
    let mut found = Vec::new();
    for removed in before.steps.iter().filter(|step| after.find(&step.name).is_none()) {
        found.push(format!("`{}` was removed", removed.name));
    }
    for step in &after.steps {
        match before.find(&step.name) {
            None => found.push(format!("`{}` was added {}", step.name, after.place_of(step, |_| true))),
            Some(earlier) => {
                let is_common = |name: &str| common.iter().any(|known| known == name);
                let is_visible = |name: &str| is_common(name) && name != step.name;
                let (was, is) = (before.place_of(earlier, is_visible), after.place_of(step, is_visible));
                if !is_common(&step.name) || was != is {
                    found.push(format!("`{}` was moved: it came {was}, and comes {is}", step.name));
                }
                found.extend(changed_fields(earlier, step));
            }
        }
    }
    match (&before.pivot, &after.pivot) {
        (None, None) => {}
        (Some(was), Some(is)) if was == is => {}
        (None, Some(is)) => found.push(format!("`{is}` became the pivot, and there was none")),
        (Some(was), None) => found.push(format!("`{was}` was the pivot, and there is none any more")),
        (Some(was), Some(is)) => found.push(format!("the pivot was `{was}`, and is `{is}`")),
    }
    found
}

/// The steps of a stored shape.
struct Steps {
    steps: Vec<Step>,
    pivot: Option<String>,
}

struct Step {
    name: String,
    /// The steps that it comes after.
    after: Vec<usize>,
    fields: Map<String, Value>,
}

impl Steps {
    fn read(text: &str) -> Option<Self> {
        let shape: Value = serde_json::from_str(text).ok()?;
        let mut steps = Vec::new();
        for (index, step) in shape.get("steps")?.as_array()?.iter().enumerate() {
            let mut fields = step.as_object()?.clone();
            let name = fields.remove("name")?.as_str()?.to_owned();
            let after = match fields.remove("after") {
                Some(Value::Array(after)) => {
                    after.iter().filter_map(|index| usize::try_from(index.as_u64()?).ok()).collect()
                }
                _ => index.checked_sub(1).into_iter().collect(),
            };
            steps.push(Step { name, after, fields });
        }
        let pivot = shape.get("pivot").and_then(Value::as_u64).and_then(|pivot| usize::try_from(pivot).ok());
        let pivot = pivot.and_then(|pivot| steps.get(pivot)).map(|step| step.name.clone());
        Some(Self { steps, pivot })
    }

    fn names(&self) -> Vec<&str> {
        self.steps.iter().map(|step| step.name.as_str()).collect()
    }

    fn find(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// After which of the visible steps a step comes.
    fn place_of(&self, step: &Step, is_visible: impl Fn(&str) -> bool) -> String {
        let (mut open, mut passed, mut names) = (step.after.clone(), Vec::new(), Vec::new());
        while let Some(index) = open.pop() {
            let Some(before) = self.steps.get(index).filter(|_| !passed.contains(&index)) else { continue };
            passed.push(index);
            if is_visible(&before.name) {
                names.push(format!("`{}`", before.name));
            } else {
                open.extend(&before.after);
            }
        }
        names.sort_unstable();
        if names.is_empty() { "first".to_owned() } else { format!("behind {}", names.join(" and ")) }
    }
}

/// The longest common subsequence of the two lists.
fn in_one_order(before: &[&str], after: &[&str]) -> Vec<String> {
    // `longest[i][j]` is its length in the parts from `i` and from `j` on.
    let mut longest = vec![vec![0_usize; after.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            longest[i][j] = if before[i] == after[j] {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut common) = (0, 0, Vec::new());
    while i < before.len() && j < after.len() {
        if before[i] == after[j] {
            common.push(before[i].to_owned());
            (i, j) = (i + 1, j + 1);
        } else if longest[i + 1][j] >= longest[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    common
}

fn changed_fields(before: &Step, after: &Step) -> Vec<String> {
    let name = &after.name;
    let mut fields: Vec<&String> = before.fields.keys().chain(after.fields.keys()).collect();
    fields.sort_unstable();
    fields.dedup();
    let changed = fields.into_iter().filter_map(|field| {
        let (was, is) = (before.fields.get(field), after.fields.get(field));
        (was != is).then(|| match field.as_str() {
            "effect" => format!("`{name}` {}, and {}", effect(was, "was"), effect(is, "is")),
            "undo" => format!("`{name}` {}, and {}", undo(was, "had"), undo(is, "has")),
            "each" => format!("`{name}` {}, and {}", each(was, "was"), each(is, "is")),
            other => format!("`{name}` had {}, and has {}", any(other, was), any(other, is)),
        })
    });
    changed.collect()
}

fn effect(effect: Option<&Value>, verb: &str) -> String {
    match effect {
        Some(Value::String(kind)) if kind == "transactional" => format!("{verb} a step with a transaction"),
        Some(Value::String(kind)) if kind == "external" => format!("{verb} a step without a transaction"),
        Some(Value::Object(kind)) if kind.contains_key("remote") => {
            let service = kind["remote"].get("service").and_then(Value::as_str).unwrap_or_default();
            format!("{verb} done by the service `{service}`")
        }
        other => format!("{verb} {}", any("effect", other)),
    }
}

fn undo(undo: Option<&Value>, verb: &str) -> String {
    match undo.and_then(Value::as_str) {
        Some("not-needed") => format!("{verb} `no_compensation`"),
        Some("missing") => format!("{verb} no compensation"),
        Some("needs-output") => format!("{verb} a compensation that needs its output"),
        Some("takes-unknown") => format!("{verb} a compensation that takes an unknown output"),
        _ => format!("{verb} {}", any("undo", undo)),
    }
}

fn each(at_once: Option<&Value>, verb: &str) -> String {
    match at_once {
        None => format!("{verb} done once"),
        Some(at_once) => format!("{verb} done for each item of a list, {at_once} at once"),
    }
}

fn any(field: &str, value: Option<&Value>) -> String {
    value.map_or_else(|| format!("no `{field}`"), |value| format!("`{field}` {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(steps: &str, pivot: &str) -> String {
        let step = |name: &str| match name.split_once('+') {
            None => format!(r#"{{"name":"{name}","effect":"transactional","undo":"needs-output"}}"#),
            Some((name, more)) => format!(r#"{{"name":"{name}",{more}}}"#),
        };
        let steps: Vec<String> = steps.split(' ').map(step).collect();
        format!(r#"{{"steps":[{}],"pivot":{pivot}}}"#, steps.join(","))
    }

    fn check(before: &str, after: &str, expected: &[&str]) {
        assert_eq!(differences(&shape(before, "null"), &shape(after, "null")), expected, "{before} -> {after}");
    }

    #[test]
    fn each_change_is_a_sentence() {
        check("a b c", "a b c", &[]);
        check("a b", "a b c", &["`c` was added behind `b`"]);
        check("a b", "c a b", &["`c` was added first"]);
        check("a b c", "a c", &["`b` was removed"]);
        check("a b c", "a x c", &["`b` was removed", "`x` was added behind `a`"]);
        check("a b c", "a c b", &["`b` was moved: it came behind `a`, and comes behind `c`"]);
        check("a b c d", "d a b c", &["`d` was moved: it came behind `c`, and comes first"]);
        check(
            "a b+\"undo\":\"missing\"",
            "a b+\"undo\":\"not-needed\"",
            &["`b` had no compensation, and has `no_compensation`"],
        );
        check(
            "a+\"effect\":\"transactional\"",
            "a+\"effect\":{\"remote\":{\"service\":\"payments\"}}",
            &["`a` was a step with a transaction, and is done by the service `payments`"],
        );
        check(
            "a",
            "a+\"each\":4,\"effect\":\"transactional\",\"undo\":\"needs-output\"",
            &["`a` was done once, and is done for each item of a list, 4 at once"],
        );
    }

    #[test]
    fn branches_and_pivots_are_compared() {
        let branches = "a b c+\"effect\":\"transactional\",\"undo\":\"needs-output\",\"after\":[0]";
        check("a b c", branches, &["`c` was moved: it came behind `b`, and comes behind `a`"]);
        let pivots = |before: &str, after: &str| differences(&shape("a b", before), &shape("a b", after));
        assert_eq!(pivots("null", "1"), ["`b` became the pivot, and there was none"]);
        assert_eq!(pivots("0", "null"), ["`a` was the pivot, and there is none any more"]);
        assert_eq!(pivots("0", "1"), ["the pivot was `a`, and is `b`"]);
    }

    #[test]
    fn what_this_version_does_not_know_is_compared_as_it_is() {
        check("a+\"deadline\":5", "a+\"deadline\":7", &["`a` had `deadline` 5, and has `deadline` 7"]);
        check(
            "a+\"deadline\":5",
            "a+\"quick\":true",
            &["`a` had `deadline` 5, and has no `deadline`", "`a` had no `quick`, and has `quick` true"],
        );
        assert!(differences("nothing", &shape("a", "null")).is_empty());
    }
}
