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
    let mut before = "start".to_owned();
    for (index, step) in shape.steps.iter().enumerate() {
        let pivot = if shape.pivot == Some(index) { "<br/>pivot" } else { "" };
        line(match step.effect {
            Effect::Transactional => format!("s{index}[\"{}{pivot}\"]", step.name),
            Effect::External => format!("s{index}[/\"{}{pivot}\"/]", step.name),
            Effect::Remote { service } => format!("s{index}[[\"{} ({service}){pivot}\"]]", step.name),
        });
        line(format!("{before} --> s{index}"));
        before = format!("s{index}");
    }
    line("completed([completed])".to_owned());
    line(format!("{before} --> completed"));
    let undone = |step: usize| {
        matches!(shape.steps[step].undo, UndoShape::NeedsOutput | UndoShape::TakesUnknown)
            && shape.pivot.is_none_or(|pivot| step < pivot)
    };
    for (index, step) in shape.steps.iter().enumerate().filter(|(index, _)| undone(*index)) {
        line(format!("u{index}[\"undo {}\"]", step.name));
    }
    line("compensated([compensated])".to_owned());
    let previous_undo = |step: usize| {
        (0..step).rev().find(|&other| undone(other)).map_or("compensated".to_owned(), |other| format!("u{other}"))
    };
    for index in 0..shape.steps.len() {
        if undone(index) {
            line(format!("u{index} --> {}", previous_undo(index)));
        }
        if shape.pivot.is_none_or(|pivot| index <= pivot) {
            line(format!("s{index} -. fails .-> {}", previous_undo(index)));
        }
    }
    chart
}
