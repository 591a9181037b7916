//! G5 where arms of a choice stand beside each other: one of them runs, and it is the one that was recorded.

use super::book::{Book, broken};
use super::violation::{Guarantee, Violation};
use super::{ArmPlan, ChosenSeen, Op, Standing};

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    for saga in 0..book.sagas.len() {
        let of = &book.sagas[saga];
        let mut note = |about: String| broken(found, Guarantee::G5, Some(saga), about);
        for (step, plan) in of.steps() {
            let name = of.name(step, Op::Do);
            let is_taken = |arm: &&ArmPlan| of.end.chosen.iter().any(|chosen| takes(chosen, arm));
            if book.effect_of(saga, step, Op::Do).is_some()
                && let Some(ArmPlan { choice, arm }) = plan.arms.iter().find(|arm| !is_taken(arm))
            {
                note(format!("{name} took effect, and that the arm {arm} of {choice} is taken was never recorded"));
            }
            let is_expected = of.end.standing == Standing::Completed && !of.is_forced() && !of.is_passed_by(step);
            if let (true, Some(arm)) = (is_expected, plan.arms.iter().find(|arm| !is_taken(arm))) {
                note(format!("the saga is completed, and {} was never made", arm.choice));
            }
        }
        for (place, chosen) in of.end.chosen.iter().enumerate() {
            if of.end.chosen[..place].iter().any(|other| other.choice == chosen.choice) {
                note(format!("{} was made twice", chosen.choice));
            }
        }
    }
}

fn takes(chosen: &ChosenSeen, arm: &ArmPlan) -> bool {
    chosen.choice == arm.choice && chosen.arm.as_ref() == Some(&arm.arm)
}
