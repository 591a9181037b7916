use std::collections::BTreeSet;
use std::fmt::Write;

use super::definition::arm::LAST_ARM;
use crate::machine::{ArmOf, Effect, Shape, UndoShape};
use crate::store::DefinitionId;

/// The definition as a Mermaid flow chart: forward on the left, undo on the right, in the order in which it would run.
pub(super) fn mermaid(id: &DefinitionId, shape: &Shape) -> String {
    let mut chart = format!("---\ntitle: {id}\n---\nflowchart TD\n    start([start])\n");
    let mut line = |text: String| {
        // A string takes every write.
        let _ = writeln!(chart, "    {text}");
    };
    for (index, step) in shape.steps.iter().enumerate() {
        let more = match step.each {
            Some(at_once) => format!("<br/>for each, {at_once} at once"),
            None if shape.pivot == Some(index) => "<br/>pivot".to_owned(),
            None if shape.is_lock(index) => "<br/>takes a semantic lock".to_owned(),
            None if shape.awaits_signal(index) => "<br/>waits for a signal".to_owned(),
            None if shape.is_wait(index) => "<br/>waits".to_owned(),
            None => String::new(),
        };
        line(match step.effect {
            _ if step.child.is_some() => format!("s{index}[[\"{}{more}\"]]", step.name),
            _ if step.is_choice() => format!("s{index}{{\"{}\"}}", step.name),
            Effect::Transactional | Effect::Own | Effect::Signal => format!("s{index}[\"{}{more}\"]", step.name),
            Effect::External => format!("s{index}[/\"{}{more}\"/]", step.name),
            Effect::Remote { service } => format!("s{index}[[\"{} ({service}){more}\"]]", step.name),
        });
        let before: Vec<usize> = shape.predecessors(index).collect();
        if before.is_empty() {
            line(format!("start --> s{index}"));
        }
        for before in before {
            line(match arm_between(shape, before, index) {
                Some(arm) => format!("s{before} -- {arm} --> s{index}"),
                None => format!("s{before} --> s{index}"),
            });
        }
    }
    line("completed([completed])".to_owned());
    let falls_through = (0..shape.steps.len()).filter(|&step| {
        let is_behind = |later: usize| arm_between(shape, step, later).is_some() && !is_in_arm_of(shape, later, step);
        passes(shape, step).is_some() && !(step + 1..shape.steps.len()).any(is_behind)
    });
    let last = shape.last().into_iter().filter(|&step| !shape.is_choice(step));
    for last in last.chain(falls_through) {
        line(match passes(shape, last) {
            Some(arms) => format!("s{last} -- {arms} --> completed"),
            None => format!("s{last} --> completed"),
        });
    }
    let undone = |step: usize| {
        matches!(shape.steps[step].undo, UndoShape::NeedsOutput | UndoShape::TakesUnknown)
            && shape.pivot.is_none_or(|pivot| step < pivot)
    };
    for (index, step) in shape.steps.iter().enumerate().filter(|(index, _)| undone(*index)) {
        let each = if step.each.is_some() { "<br/>each, the latest first" } else { "" };
        line(format!("u{index}[\"undo {}{each}\"]", step.name));
    }
    line("compensated([compensated])".to_owned());
    for index in 0..shape.steps.len() {
        let undos = previous_undos(shape, index, undone);
        if undone(index) {
            for undo in &undos {
                line(format!("u{index} --> {undo}"));
            }
        }
        if shape.pivot.is_none_or(|pivot| index <= pivot) && !shape.is_choice(index) {
            for undo in &undos {
                line(format!("s{index} -. fails .-> {undo}"));
            }
        }
    }
    chart
}

/// What is written on the way from a choice: the arm that the way leads into, or those in which nothing is done.
fn arm_between(shape: &Shape, before: usize, step: usize) -> Option<String> {
    if !shape.predecessors(step).any(|other| other == before) {
        return None;
    }
    match shape.arms_around(step).find(|arm| arm.choice == before) {
        Some(arm) => Some(shape.steps[before].arms[arm.arm].to_owned()),
        None => passes(shape, before),
    }
}

fn is_in_arm_of(shape: &Shape, step: usize, choice: usize) -> bool {
    shape.arms_around(step).any(|arm| arm.choice == choice)
}

/// The arms of a choice in which nothing is done, if there are any: the way leads on from the choice itself.
fn passes(shape: &Shape, choice: usize) -> Option<String> {
    let arms = &shape.steps[choice].arms;
    let is_empty = |arm: usize| !shape.steps.iter().any(|step| step.within == Some(ArmOf { choice, arm }));
    let mut empty: Vec<&str> = (0..arms.len()).filter(|&arm| is_empty(arm)).map(|arm| arms[arm]).collect();
    if shape.is_choice(choice) && arms.last() != Some(&LAST_ARM) {
        empty.push(LAST_ARM);
    }
    (!empty.is_empty()).then(|| empty.join(", "))
}

/// What is undone next behind a step: of each way that leads to it the latest step that has an undo.
fn previous_undos(shape: &Shape, step: usize, undone: impl Fn(usize) -> bool) -> Vec<String> {
    let mut open: Vec<usize> = shape.predecessors(step).collect();
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    while let Some(before) = open.pop() {
        if !seen.insert(before) {
            continue;
        }
        if undone(before) {
            found.insert(before);
        } else {
            open.extend(shape.predecessors(before));
        }
    }
    if found.is_empty() {
        return vec!["compensated".to_owned()];
    }
    found.into_iter().map(|undo| format!("u{undo}")).collect()
}
