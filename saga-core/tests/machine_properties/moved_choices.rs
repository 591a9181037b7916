//! Sagas that move between versions with choices, at any moment: where they stand then is where a saga of the new version
//! could stand, and from there they obey G5. What a saga could do is tried out, not asked of the rules of a move.

use std::collections::BTreeMap;

use saga_core::machine::{
    self, Action, Event, Migrated, Phase, Route, SagaState, Shape, StepPhase, StepState, UndoShape,
};
use saga_core::store::Status;

use crate::driven::{Saga, begin};
use crate::ledger::check_state;
use crate::trees::{Draws, Gardener, shape_of};

const SEEDS: u64 = 30_000;

/// Another version, and what is said of the move.
struct Other {
    shape: Shape,
    places: Vec<Option<usize>>,
    passed: Vec<usize>,
    arms: Vec<Vec<Option<usize>>>,
    chosen: Vec<(usize, Option<usize>)>,
}

/// Says which seed it was when a test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed is {}", self.0);
        }
    }
}

/// Steps and choices of the same name are the same ones, and so are arms.
fn other(from: &Shape, shape: Shape, draws: &mut Draws) -> Other {
    let places: Vec<Option<usize>> = from.steps.iter().map(|step| shape.position(step.name)).collect();
    let arms = from.steps.iter().zip(&places).map(|(old, place)| {
        let new = place.map_or(&[][..], |place| &shape.steps[place].arms);
        old.arms.iter().map(|arm| new.iter().position(|other| other == arm)).collect()
    });
    let arms = arms.collect();
    let passed = (0..shape.steps.len()).filter(|step| !shape.is_choice(*step) && draws.chance(60)).collect();
    let mut chosen = Vec::new();
    for (choice, of) in shape.steps.iter().enumerate().filter(|(_, step)| step.is_choice()) {
        if draws.chance(75) {
            let arm = draws.below(of.arms.len() + 1);
            chosen.push((choice, (arm < of.arms.len()).then_some(arm)));
        }
    }
    Other { shape, places, passed, arms, chosen }
}

fn migrate(saga: &Saga, other: &Other) -> Result<Migrated, Vec<String>> {
    let route = Route {
        from: &saga.shape,
        to: &other.shape,
        places: &other.places,
        assumed_done: &other.passed,
        arms: &other.arms,
        assumed_arms: &other.chosen,
    };
    machine::migrate(&route, &saga.state, &saga.made())
}

/// The arms of the new version that count as taken: those that were taken, and where none was, what is said.
fn taken_there(old: &Saga, other: &Other, moved: &Migrated) -> BTreeMap<usize, Option<usize>> {
    let arm = |choice: usize, place: usize, arm: usize| {
        let name = old.shape.steps[choice].arms[arm];
        other.shape.steps[place].arms.iter().position(|other| *other == name).expect("the arm that was taken is there")
    };
    let made = old.made().into_iter().filter_map(|(choice, taken)| {
        let place = other.places[choice]?;
        Some((place, taken.map(|taken| arm(choice, place, taken))))
    });
    let mut taken: BTreeMap<usize, Option<usize>> = made.collect();
    for record in moved.records.iter().filter(|record| other.shape.is_choice(record.step)) {
        let (_, arm) = other.chosen.iter().find(|(choice, _)| *choice == record.step).expect("it was said");
        assert!(taken.insert(record.step, *arm).is_none(), "a choice that was made is made again");
    }
    taken
}

/// Has a saga of the new version do what the moved one did, in that order, and says where it cannot.
fn come_there(shape: &Shape, moved: &SagaState, taken: &BTreeMap<usize, Option<usize>>) -> Result<(), String> {
    let (mut state, _) = machine::start(shape);
    let apply = |state: &mut SagaState, event| _ = machine::apply(shape, state, event).expect("it is accepted");
    loop {
        let is_open = |step: &usize| state.steps[*step].phase == StepPhase::Started;
        let skipped = (0..shape.steps.len()).filter(is_open).find(|step| {
            moved.steps[*step].phase == StepPhase::Skipped || shape.is_choice(*step) && taken.contains_key(step)
        });
        if let Some(step) = skipped {
            if shape.is_choice(step) {
                apply(&mut state, Event::Chosen { step, arm: taken[&step] });
            } else {
                apply(&mut state, Event::Blocked { step, reason: "no".to_owned(), in_doubt: false });
                apply(&mut state, Event::Operator(Action::Skip));
            }
            continue;
        }
        let is_left = |step: &usize| {
            let is_open = moved.steps[*step].phase == StepPhase::Done && !state.steps[*step].is_passed();
            is_open && !shape.is_choice(*step)
        };
        let next = (0..shape.steps.len()).filter(is_left).min_by_key(|step| moved.steps[*step].position);
        let Some(step) = next else { break };
        if state.steps[step].phase != StepPhase::Started {
            return Err(format!("the turn of `{}` has not come", shape.steps[step].name));
        }
        apply(&mut state, Event::Done { step });
    }
    for (step, of) in shape.steps.iter().enumerate() {
        let (is, would) = (moved.steps[step].phase, state.steps[step].phase);
        // What is beside the rest begins with the next event.
        let is_late = is == StepPhase::Ready && would == StepPhase::Started;
        let is_same = is == would
            || is_late
            || (shape.is_choice(step) && moved.steps[step].is_passed() && would == StepPhase::Done);
        if !is_same {
            return Err(format!("`{}` would be {}, and is {}", of.name, would.as_str(), is.as_str()));
        }
    }
    Ok(())
}

/// Nothing that has begun is lost or looks otherwise, and nothing is gone past that was not said.
fn check_kept(old: &Saga, other: &Other, moved: &Migrated) {
    let has_begun = |phase| !matches!(phase, StepPhase::Ready | StepPhase::NotTaken);
    for (step, state) in old.state.steps.iter().enumerate().filter(|(_, state)| has_begun(state.phase)) {
        if let Some(place) = other.places[step] {
            assert_eq!(moved.state.steps[place], *state);
        } else {
            let is_open = matches!(state.phase, StepPhase::Started | StepPhase::Undoing);
            let is_needed = old.stands(step) && !only_goes_forward(&other.shape, &moved.state);
            assert!(!is_open && !is_needed, "`{}` is left out", old.shape.steps[step].name);
        }
    }
    for (place, state) in moved.state.steps.iter().enumerate().filter(|(_, state)| has_begun(state.phase)) {
        let was = other.places.iter().position(|old| *old == Some(place));
        let is_said = other.passed.contains(&place) || other.chosen.iter().any(|(choice, _)| *choice == place);
        let is_known = was.is_some_and(|was| has_begun(old.state.steps[was].phase));
        assert!(is_known || (is_said && state.phase == StepPhase::Skipped), "step {place} has begun in the move");
    }
}

fn only_goes_forward(shape: &Shape, state: &SagaState) -> bool {
    shape.pivot.is_some_and(|pivot| state.steps[pivot].phase == StepPhase::Done)
}

/// From there it comes to its end, and what stood is undone or stands.
fn check_rest(moved: &Migrated, taken: &BTreeMap<usize, Option<usize>>, shape: &Shape, draws: &mut Draws) -> Status {
    let stands = |step: &usize| matches!(moved.state.steps[*step].phase, StepPhase::Done | StepPhase::Unknown);
    let standing: Vec<usize> = (0..moved.state.steps.len()).filter(stands).collect();
    let is_bound = only_goes_forward(shape, &moved.state);
    let mut saga = Saga::at(shape.clone(), moved.state.clone());
    saga.wander(&tape(draws));
    saga.go_on_to_the_end();
    assert!(saga.taken.keys().all(|choice| !taken.contains_key(choice)), "a choice that was made is made again");
    let status = saga.state.status();
    if status == Status::Completed {
        assert!(saga.state.steps.iter().all(StepState::is_passed));
        assert!(standing.iter().all(|step| saga.state.steps[*step].phase == StepPhase::Done));
    } else {
        assert_eq!(status, Status::Compensated);
        assert!(!is_bound, "what is past its pivot is not undone");
        assert!((0..saga.state.steps.len()).all(|step| !saga.stands(step)), "{:?}", saga.state);
        for step in standing {
            let needs_undo = shape.steps[step].undo != UndoShape::NotNeeded;
            assert_eq!(saga.undone.contains(&step), needs_undo, "step {step} of {:?}", saga.state);
        }
    }
    status
}

fn tape(draws: &mut Draws) -> Vec<u16> {
    let count = draws.below(10);
    (0..count).map(|_| u16::try_from(draws.below(1 << 16)).expect("it is below")).collect()
}

/// What the schedules came to, so that none of it goes missing without a word.
#[derive(Debug, Default)]
struct Seen {
    moved: usize,
    refused: usize,
    /// Of a saga with a choice that was made, and of one that turned round.
    made: usize,
    turned_round: usize,
    /// Past a choice that is new.
    chosen: usize,
    /// Passed by in one version and not in the other.
    back: usize,
    away: usize,
    undone_behind: usize,
    completed_behind: usize,
    /// Past the pivot of one version and not past that of the other.
    bound: usize,
    freed: usize,
    /// A step that stood is left out, since nothing undoes it any more.
    let_go: usize,
}

#[test]
fn g5_what_moves_between_versions_with_choices_obeys_it() {
    let mut seen = Seen::default();
    for seed in 0..SEEDS {
        let _seed = Seed(seed);
        let mut draws = Draws::of(seed);
        let mut gardener = Gardener::new(&mut draws);
        let pieces = 1 + gardener.draws.below(3);
        let mut tree = gardener.row(pieces, 2);
        let mut pivot = gardener.pivot(&tree);
        let from = shape_of(&tree, pivot);
        for _ in 0..gardener.draws.below(4) {
            gardener.edit(&mut tree);
        }
        if gardener.draws.chance(30) {
            pivot = gardener.pivot(&tree);
        }
        let to = shape_of(&tree, pivot);
        if to.steps.is_empty() {
            continue;
        }
        let before = tape(&mut draws);
        let old = begin(from, &before);
        let other = other(&old.shape, to, &mut draws);
        let moved = match migrate(&old, &other) {
            Ok(moved) => moved,
            Err(problems) => {
                assert!(problems.iter().all(|problem| problem.len() > 10), "{problems:?}");
                seen.refused += usize::from(!old.state.status().is_ended());
                continue;
            }
        };
        check_state(&other.shape, &moved.state);
        assert_eq!(moved.state.status(), old.state.status());
        check_kept(&old, &other, &moved);
        let taken = taken_there(&old, &other, &moved);
        if moved.state.phase == Phase::Running {
            let come = come_there(&other.shape, &moved.state, &taken);
            assert!(come.is_ok(), "{come:?}: {} to {}", told(&old.shape, &old.state), told(&other.shape, &moved.state));
        }
        count(&mut seen, &old, &other, &moved);
        let end = check_rest(&moved, &taken, &other.shape, &mut draws);
        seen.completed_behind += usize::from(end == Status::Completed);
        seen.undone_behind += usize::from(end == Status::Compensated && moved.state.phase == Phase::Running);
    }
    let of_choices = [seen.made, seen.chosen, seen.back, seen.away];
    let of_pivots = [seen.bound, seen.freed];
    let of_ends = [seen.refused, seen.turned_round, seen.undone_behind, seen.completed_behind];
    let least = [&of_choices[..], &of_pivots, &of_ends].concat();
    assert!(least.into_iter().all(|count| count > 50) && seen.let_go > 10, "{seen:?}");
}

fn count(seen: &mut Seen, old: &Saga, other: &Other, moved: &Migrated) {
    let both = || {
        other
            .places
            .iter()
            .enumerate()
            .filter_map(|(step, place)| Some((old.state.steps[step].phase, moved.state.steps[(*place)?].phase)))
    };
    seen.moved += 1;
    seen.made += usize::from(!old.made().is_empty());
    seen.turned_round += usize::from(moved.state.phase == Phase::Compensating);
    seen.chosen += usize::from(moved.records.iter().any(|record| other.shape.is_choice(record.step)));
    seen.back += usize::from(both().any(|(was, is)| was == StepPhase::NotTaken && is != was));
    seen.away += usize::from(both().any(|(was, is)| is == StepPhase::NotTaken && is != was));
    let was_bound = only_goes_forward(&old.shape, &old.state);
    let is_bound = only_goes_forward(&other.shape, &moved.state);
    seen.bound += usize::from(is_bound && !was_bound);
    seen.freed += usize::from(was_bound && !is_bound);
    let is_let_go = |step: usize| other.places[step].is_none() && old.stands(step);
    seen.let_go += usize::from((0..other.places.len()).any(is_let_go));
}

/// A saga in words: of each step its name, the arm that it stands in, what it comes behind, and what became of it.
fn told(shape: &Shape, state: &SagaState) -> String {
    let steps = shape.steps.iter().zip(&state.steps).enumerate().map(|(index, (step, state))| {
        let name = |step: usize| shape.steps[step].name;
        let within =
            step.within.map(|arm| format!(" in {}:{}", name(arm.choice), shape.steps[arm.choice].arms[arm.arm]));
        let after: Vec<&str> = shape.predecessors(index).map(name).collect();
        let (arms, after, within) = (step.arms.join("|"), after.join(","), within.unwrap_or_default());
        format!("{}({arms}){within} <{after}: {} {}", step.name, state.phase.as_str(), state.position)
    });
    steps.collect::<Vec<_>>().join("; ")
}
