//! A step as services name it to each other: by its name, or as `step#3` for the third item of a list.

use crate::key::{StepId, check_step_name};

/// The step's name and the number of its item; or why the text is invalid. A number has exactly one text: `step#03`
/// is invalid, and so is `step#0`, since the list itself stays with its saga.
pub(crate) fn step_or_item(text: &str) -> Result<(&str, Option<u32>), String> {
    let (step, item) = match text.split_once('#') {
        None => (text, None),
        Some((step, digits)) => (step, digits.parse().ok().filter(|item| *item > 0)),
    };
    check_step_name(step).map_err(|problem| problem.to_string())?;
    let written = item.map_or_else(|| StepId::doing(step), |item| StepId::of_item(step, item));
    if written.as_str() == text {
        Ok((step, item))
    } else {
        let text: String = text.chars().take(LENGTH_SHOWN).collect();
        Err(format!("the step {text:?} has an item that is not numbered `#n` from 1 on"))
    }
}

/// So much of a text that is none is shown.
const LENGTH_SHOWN: usize = 80;

#[cfg(test)]
mod tests {
    use super::step_or_item;

    #[test]
    fn one_item_has_one_text() {
        assert_eq!(step_or_item("pack"), Ok(("pack", None)));
        assert_eq!(step_or_item("pack#1"), Ok(("pack", Some(1))));
        assert_eq!(step_or_item("pack#4294967295"), Ok(("pack", Some(u32::MAX))));
        for text in ["pack#", "pack#0", "pack#03", "pack#+3", "pack#-3", "pack# 3", "pack#3#4", "pack#4294967296"] {
            let problem = step_or_item(text).unwrap_err();
            assert!(problem.contains("not numbered `#n` from 1 on"), "{text}: {problem}");
        }
        for text in ["", "#3", "undo#3", "Pack#3", "pack:undo", "pack#3:undo"] {
            assert!(step_or_item(text).is_err(), "{text}");
        }
    }
}
