//! Sagas that move to another version at any moment: whatever may move still obeys G5 there.

use proptest::prelude::*;
use saga_core::machine::{self, Effect, Event, Migrated, Route, Shape, StepPhase, StepShape, UndoShape};
use saga_core::store::Status;

use crate::arms::choices;
use crate::driven::{Saga, begin};
use crate::ledger::check_state;
use crate::shapes::{groups, lists, shape};

const NEW: [&str; 8] = ["new-a", "new-b", "new-c", "new-d", "new-e", "new-f", "new-g", "new-h"];

/// Another version, and where the steps of the first are in it.
#[derive(Debug, Clone)]
struct Other {
    shape: Shape,
    places: Vec<Option<usize>>,
    passed: Vec<usize>,
    arms: Vec<Vec<Option<usize>>>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![shape(), groups(), lists(), choices()]
}

/// Changes a shape as people do. Branches and arms stay as they are: what is added stands behind all.
fn edited(from: &Shape, edits: &[(u8, u8, u8)], may_pass: u8) -> Other {
    let mut steps: Vec<(Option<usize>, StepShape)> =
        from.steps.iter().enumerate().map(|(index, step)| (Some(index), step.clone())).collect();
    let mut pivot = from.pivot;
    let mut names = NEW.into_iter();
    for &(what, at, how) in edits {
        let Some(name) = names.next() else { break };
        let at = usize::from(at) % steps.len();
        let fresh = StepShape::new(name, effect(how), undo(how));
        let is_sequence = from.is_sequence() && !from.has_choices();
        let is_own = steps[at].1.effect == Effect::Own;
        match what % 8 {
            0 if is_sequence => {
                pivot = pivot.map(|pivot| if pivot >= at { pivot + 1 } else { pivot });
                steps.insert(at, (None, fresh));
            }
            1 if is_sequence && steps.len() > 1 => {
                steps.remove(at);
                pivot = pivot.filter(|pivot| *pivot != at).map(|pivot| if pivot > at { pivot - 1 } else { pivot });
            }
            2 if is_sequence && at > 0 => steps.swap(at - 1, at),
            3 => steps[at].1.name = name,
            4 if !is_own => steps[at].1.undo = undo(how),
            5 if !is_own => steps[at].1.effect = effect(how),
            6 if steps[at].1.each.is_none() && is_sequence => pivot = (how % 3 > 0).then_some(at),
            _ if is_sequence => steps.push((None, fresh)),
            _ => {}
        }
    }
    let mut shape = Shape { steps: steps.iter().map(|(_, step)| step.clone()).collect(), pivot };
    make_valid(&mut shape);
    let places = (0..from.steps.len()).map(|old| steps.iter().position(|(from, _)| *from == Some(old))).collect();
    let is_passed =
        |(index, (old, _)): &(usize, &(Option<usize>, StepShape))| old.is_none() && may_pass >> (index % 8) & 1 == 1;
    let passed = steps.iter().enumerate().filter(is_passed).map(|(index, _)| index).collect();
    let arms = from.steps.iter().map(|step| (0..step.arms.len()).map(Some).collect()).collect();
    Other { shape, places, passed, arms }
}

fn effect(how: u8) -> Effect {
    [Effect::Transactional, Effect::External, Effect::Remote { service: "elsewhere" }][usize::from(how) % 3]
}

fn undo(how: u8) -> UndoShape {
    [UndoShape::TakesUnknown, UndoShape::NeedsOutput, UndoShape::NotNeeded, UndoShape::Missing][usize::from(how) % 4]
}

/// What a builder would refuse is mended.
fn make_valid(shape: &mut Shape) {
    let last = shape.steps.len() - 1;
    if shape.pivot.is_none() && shape.is_sequence() && shape.steps[last].undo == UndoShape::Missing {
        shape.pivot = Some(last);
    }
    let before = shape.pivot.unwrap_or(shape.steps.len());
    for step in shape.steps[..before].iter_mut().filter(|step| step.undo == UndoShape::Missing) {
        step.undo = UndoShape::TakesUnknown;
    }
}

fn migrate(saga: &Saga, other: &Other) -> Result<Migrated, Vec<String>> {
    let route = Route {
        from: &saga.shape,
        to: &other.shape,
        places: &other.places,
        assumed_done: &other.passed,
        arms: &other.arms,
        assumed_arms: &[],
    };
    machine::migrate(&route, &saga.state, &saga.made())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    /// G5 through a move: the saga goes on as one that was always of the new version, and what had taken effect when it
    /// moved is undone if it turns round, or still stands when it completes.
    #[test]
    fn g5_what_moves_to_another_version_obeys_it(
        shape in shapes(),
        edits in prop::collection::vec(any::<(u8, u8, u8)>(), 0..4),
        may_pass in any::<u8>(),
        before in prop::collection::vec(any::<u16>(), 0..14),
        after in prop::collection::vec(any::<u16>(), 0..14),
    ) {
        let old = begin(shape, &before);
        let other = edited(&old.shape, &edits, may_pass);
        let Ok(migrated) = migrate(&old, &other) else { return Ok(()) };
        check_state(&other.shape, &migrated.state);
        prop_assert_eq!(migrated.state.status(), old.state.status());
        // What took effect is there, or nothing would ever undo it.
        let left_out: Vec<usize> = (0..old.shape.steps.len()).filter(|step| other.places[*step].is_none()).collect();
        let lost = left_out.iter().any(|step| old.stands(*step));
        for (step, place) in other.places.iter().enumerate() {
            if let Some(place) = place {
                prop_assert_eq!(migrated.state.steps[*place], old.state.steps[step]);
            }
        }
        let standing: Vec<usize> = (0..migrated.state.steps.len())
            .filter(|step| matches!(migrated.state.steps[*step].phase, StepPhase::Done | StepPhase::Unknown))
            .collect();
        let mut saga = Saga::at(other.shape.clone(), migrated.state);
        saga.wander(&after);
        saga.go_on_to_the_end();
        match saga.state.status() {
            Status::Completed => {
                let is_passed = |step: &usize| saga.state.steps[*step].is_passed();
                prop_assert!((0..saga.shape.steps.len()).all(|step| is_passed(&step)));
            }
            Status::Compensated => {
                prop_assert!(!lost, "what was left out had an effect that nobody undid");
                prop_assert!((0..saga.state.steps.len()).all(|step| !saga.stands(step)), "{:?}", saga.state);
                for step in standing {
                    let needs_undo = saga.shape.undo(&saga.state, step) != UndoShape::NotNeeded;
                    prop_assert_eq!(saga.undone.contains(&step), needs_undo, "step {} of {:?}", step, saga.state);
                }
            }
            other => prop_assert!(false, "{} is no end", other),
        }
    }

    /// The same steps in another version are no reason to refuse anything but the end.
    #[test]
    fn what_did_not_change_can_always_move(
        shape in shapes(),
        before in prop::collection::vec(any::<u16>(), 0..20),
    ) {
        let old = begin(shape, &before);
        let other = edited(&old.shape, &[], 0);
        match migrate(&old, &other) {
            Ok(migrated) => prop_assert_eq!(migrated, Migrated { state: old.state, records: Vec::new(), withdrawn: Vec::new() }),
            Err(problems) => prop_assert!(old.state.status().is_ended(), "{:?}: {:?}", problems, old.state),
        }
    }

    /// A refusal names its reasons.
    #[test]
    fn a_refusal_says_why(
        shape in shapes(),
        edits in prop::collection::vec(any::<(u8, u8, u8)>(), 1..6),
        before in prop::collection::vec(any::<u16>(), 0..14),
    ) {
        let old = begin(shape, &before);
        let other = edited(&old.shape, &edits, 0);
        if let Err(problems) = migrate(&old, &other) {
            prop_assert!(!problems.is_empty() && problems.iter().all(|problem| problem.len() > 10));
        }
    }
}

/// What a step is called in each version, in one line: `a! b` is a done `a` before a `b` that is under way.
fn check(from: &str, to: &str, passed: &[usize], expected: Result<&str, &str>) {
    let name = |step: &str| -> &'static str {
        let name = step.trim_end_matches('!');
        ["a", "b", "c", "x", "y"].into_iter().find(|known| *known == name).unwrap_or("?")
    };
    let plain = |name| StepShape::new(name, Effect::Transactional, UndoShape::NeedsOutput);
    let shape_of = |text: &str| Shape { steps: text.split(' ').map(|step| plain(name(step))).collect(), pivot: None };
    let (old, new) = (shape_of(from), shape_of(to));
    let done = from.split(' ').filter(|step| step.ends_with('!')).count();
    let (mut state, _) = machine::start(&old);
    for step in 0..done {
        machine::apply(&old, &mut state, Event::Done { step }).expect("no operator acts");
    }
    let places: Vec<Option<usize>> = old.steps.iter().map(|step| new.position(step.name)).collect();
    let route = Route { from: &old, to: &new, places: &places, assumed_done: passed, arms: &[], assumed_arms: &[] };
    let moved = machine::migrate(&route, &state, &[]).map(|moved| {
        let phases = moved
            .state
            .steps
            .iter()
            .zip(&new.steps)
            .map(|(state, step)| format!("{} {}", step.name, state.phase.as_str()));
        phases.collect::<Vec<_>>().join(", ")
    });
    match (moved, expected) {
        (Ok(moved), Ok(expected)) => assert_eq!(moved, expected, "{from} -> {to}"),
        (Err(problems), Err(expected)) => {
            assert!(problems.join("; ").contains(expected), "{from} -> {to}: {problems:?}");
        }
        (moved, expected) => panic!("{from} -> {to}: {moved:?} instead of {expected:?}"),
    }
}

#[test]
fn each_rule_has_its_sentence() {
    check("a! b", "a b c", &[], Ok("a done, b started, c ready"));
    check("a! b c", "a b", &[], Ok("a done, b started"));
    check(
        "a! b",
        "a x b",
        &[],
        Err(
            "`b` has begun, and `x`, which comes before it in the other version, has not been done; if it is not needed there, say so with `.assume_done::<step>()`",
        ),
    );
    check("a! b", "a x b", &[1], Ok("a done, x skipped, b started"));
    check("a b", "a x b", &[1], Ok("a started, x ready, b ready"));
    check("a! b! c", "b a c", &[], Err("`a` was done before `b`, and comes behind it in the other version"));
    check("a! b", "a c", &[], Err("`b` is under way, and the other version does not have it"));
    check("a! b", "b", &[], Err("`a` took effect and can be undone, and without the step it would not be"));
    check(
        "a! b c",
        "b a c",
        &[],
        Err("`a` has begun, and `b`, which comes before it in the other version, has not been done"),
    );
    check("a! b!", "a b", &[], Err("it has ended"));
}

/// The key of a sub-saga goes with the name of its step, so what began as one goes on as the same one, by the same name.
#[test]
fn a_sub_saga_that_has_begun_stays_what_it_is() {
    let child = |name, child: Option<&str>| StepShape {
        child: child.map(ToOwned::to_owned),
        ..StepShape::new(name, Effect::Own, UndoShape::TakesUnknown)
    };
    let shape = |first: StepShape| Shape { steps: vec![first, child("z", None)], pivot: None };
    let old = shape(child("a", Some("ship")));
    let (fresh, _) = machine::start(&old);
    let mut done = fresh.clone();
    machine::apply(&old, &mut done, Event::Done { step: 0 }).expect("no operator acts");
    for state in [fresh, done] {
        let moved = |first: StepShape| {
            let to = shape(first);
            let places = [Some(0), Some(1)];
            let route = Route { from: &old, to: &to, places: &places, assumed_done: &[], arms: &[], assumed_arms: &[] };
            machine::migrate(&route, &state, &[]).err()
        };
        let said = |first| moved(first).expect("it is refused").join("; ");
        assert_eq!(moved(child("a", Some("ship"))), None);
        assert_eq!(
            said(child("b", Some("ship"))),
            "`a` has begun, and the key of its saga goes with its name; call the new step by it"
        );
        assert_eq!(
            said(child("a", Some("send"))),
            "`a` has begun, and is the saga `ship` in one version and the saga `send` in the other"
        );
        assert_eq!(
            said(child("a", None)),
            "`a` has begun, and is the saga `ship` in one version and no saga in the other"
        );
    }
}
