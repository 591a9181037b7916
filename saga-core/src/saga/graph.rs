use std::collections::BTreeSet;
use std::fmt::Write;

use crate::machine::{Effect, Shape, UndoShape};
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
            None if shape.awaits_signal(index) => "<br/>waits for a signal".to_owned(),
            None if shape.is_pause(index) => "<br/>waits".to_owned(),
            None => String::new(),
        };
        line(match step.effect {
            Effect::Transactional | Effect::Own | Effect::Signal => format!("s{index}[\"{}{more}\"]", step.name),
            Effect::External => format!("s{index}[/\"{}{more}\"/]", step.name),
            Effect::Remote { service } => format!("s{index}[[\"{} ({service}){more}\"]]", step.name),
        });
        let before: Vec<usize> = shape.predecessors(index).collect();
        if before.is_empty() {
            line(format!("start --> s{index}"));
        }
        for before in before {
            line(format!("s{before} --> s{index}"));
        }
    }
    line("completed([completed])".to_owned());
    for last in shape.last() {
        line(format!("s{last} --> completed"));
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
        if shape.pivot.is_none_or(|pivot| index <= pivot) {
            for undo in &undos {
                line(format!("s{index} -. fails .-> {undo}"));
            }
        }
    }
    chart
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
