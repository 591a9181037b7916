//! The reactions of a service to events, and how they are put together when the service is built.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::error::ServiceProblem;
use crate::machine::{Mark, StepShape, UndoShape};
use crate::saga::{Definition, EmittedEvents, EventEncoder, Mapping, OptionalOutput, StepDefinition};
use crate::store::{Message, Store};

/// What a service does on an event.
pub(crate) struct Reaction<S: Store> {
    /// The event's name.
    pub(crate) event: &'static str,
    /// Where the event is published.
    pub(crate) topic: Arc<str>,
    pub(crate) does: Reacts<S>,
}

/// What is done.
pub(crate) enum Reacts<S: Store> {
    /// Runs a step: once per saga, or once per event.
    Run { definition: Arc<Definition<S>>, input: Mapping, is_each: bool },
    /// Undoes a step.
    Undo { definition: Arc<Definition<S>> },
    /// Gives a step that has not begun a tombstone.
    Tombstone { definition: Arc<Definition<S>> },
    /// After a time gives a step that has not begun a tombstone, and publishes an event.
    Deadline { pivot: Arc<Definition<S>>, after: Duration, tell: EventEncoder },
    /// Notes the event in the saga's timeline.
    Mark(Mark),
}

impl<S: Store> Reaction<S> {
    /// Whether the event leads to this reaction.
    pub(crate) fn is_to(&self, event: &Message) -> bool {
        *self.topic == *event.topic && self.event == event.event_type
    }

    /// Its name among those to one event.
    pub(crate) fn name(&self) -> String {
        match &self.does {
            Reacts::Run { definition, .. } => definition.steps[0].name.to_owned(),
            Reacts::Undo { definition } => format!("{}:undo", definition.steps[0].name),
            Reacts::Tombstone { definition } => format!("{}:bar", definition.steps[0].name),
            Reacts::Deadline { pivot, .. } => format!("{}:deadline", pivot.steps[0].name),
            Reacts::Mark(_) => ":timeline".to_owned(),
        }
    }
}

/// A reaction whose step is checked when the service is built.
pub(crate) struct Planned {
    pub(crate) event: &'static str,
    pub(crate) topic: String,
    pub(crate) step: &'static str,
    pub(crate) plans: Plans,
}

/// What the reaction will do.
pub(crate) enum Plans {
    Run {
        input: Mapping,
    },
    Undo,
    Tombstone,
    Deadline {
        after: Duration,
        tell: EventEncoder,
    },
    /// Marks the whole saga: there is no step.
    Mark(Mark),
}

/// A step that events start, while its service is built.
pub(crate) struct Wired<S: Store> {
    pub(crate) shape: StepShape,
    pub(crate) step: StepDefinition<S>,
    pub(crate) told: EmittedEvents,
    pub(crate) is_each: bool,
}

impl<S: Store> Wired<S> {
    /// The definition of the saga of this one step.
    fn definition(self, service: &str, reports_to: Option<&Arc<str>>) -> (Arc<Definition<S>>, bool) {
        let Self { shape, step, mut told, is_each } = self;
        told.reports_to = reports_to.cloned();
        told.reads
            .extend(step.needs.outputs.iter().map(|needed| OptionalOutput { step: needed.step, is_awaited: true }));
        told.reads.sort_by_key(|reads| (reads.step, !reads.is_awaited));
        told.reads.dedup_by_key(|reads| reads.step);
        (Arc::new(Definition::choreographed(service, shape, step, told)), is_each)
    }
}

/// Puts reactions and their steps together, and notes the problems.
pub(super) fn put_together<S: Store>(
    service: &str,
    reports_to: Option<&str>,
    wired: BTreeMap<&'static str, Wired<S>>,
    planned: Vec<Planned>,
    problems: &mut Vec<ServiceProblem>,
) -> Vec<Reaction<S>> {
    let once: Vec<&str> = wired.iter().filter(|(_, step)| !step.is_each).map(|(name, _)| *name).collect();
    let reports_to = reports_to.map(Arc::from);
    let definition = |(name, step): (&'static str, Wired<S>)| (name, step.definition(service, reports_to.as_ref()));
    let definitions: BTreeMap<_, _> = wired.into_iter().map(definition).collect();
    for (definition, _) in definitions.values() {
        let (step, told) = (definition.steps[0].name, definition.told.iter().flat_map(|told| &told.reads));
        let missing = told.filter(|reads| !once.contains(&reads.step) || reads.step == step);
        problems.extend(missing.map(|reads| ServiceProblem::ReadsOther { step, needed: reads.step }));
    }
    let mut reactions: Vec<Reaction<S>> = Vec::new();
    for Planned { event, topic, step, plans } in planned {
        if let Plans::Mark(mark) = plans {
            reactions.push(Reaction { event, topic: topic.into(), does: Reacts::Mark(mark) });
            continue;
        }
        let Some((definition, is_each)) = definitions.get(step) else {
            problems.push(ServiceProblem::NeverRun { step, event });
            continue;
        };
        let (definition, is_each) = (Arc::clone(definition), *is_each);
        let does = match plans {
            Plans::Run { input } => Reacts::Run { definition, input, is_each },
            Plans::Undo | Plans::Tombstone | Plans::Deadline { .. } if is_each => {
                problems.push(ServiceProblem::UndoneEach { step, event });
                continue;
            }
            Plans::Undo if matches!(definition.shape.steps[0].undo, UndoShape::Missing | UndoShape::NotNeeded) => {
                problems.push(ServiceProblem::NoUndo { step, event });
                continue;
            }
            Plans::Undo => Reacts::Undo { definition },
            Plans::Tombstone => Reacts::Tombstone { definition },
            Plans::Deadline { after, tell } => Reacts::Deadline { pivot: definition, after, tell },
            Plans::Mark(mark) => Reacts::Mark(mark),
        };
        let reaction = Reaction { event, topic: topic.into(), does };
        let is_twice = |other: &Reaction<S>| {
            (other.event, &other.topic) == (reaction.event, &reaction.topic) && clash(&other.does, &reaction.does)
        };
        if reactions.iter().any(is_twice) {
            problems.push(ServiceProblem::TwiceOnEvent { step, event });
        }
        reactions.push(reaction);
    }
    reactions
}

/// Whether one event must not cause both: an event does, undoes or tombstones a step, and only once.
fn clash<S: Store>(one: &Reacts<S>, other: &Reacts<S>) -> bool {
    let of = |does: &Reacts<S>| match does {
        Reacts::Run { definition, .. } | Reacts::Undo { definition } | Reacts::Tombstone { definition } => {
            Some((false, definition.steps[0].name))
        }
        Reacts::Deadline { pivot, .. } => Some((true, pivot.steps[0].name)),
        Reacts::Mark(_) => None,
    };
    of(one) == of(other)
}
