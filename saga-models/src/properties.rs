//! What must hold, by the names of the guarantees.

use saga_core::machine::{Effect, Phase, StepPhase};
use saga_core::store::{Answer, RecordedOutcome};

use crate::bounds::Place;
use crate::message::{Body, STRANGER, Said};
use crate::protocol::Protocol;
use crate::world::{Service, Stage, World};

type Named = (&'static str, fn(&Protocol, &World) -> bool);

/// What holds at every moment.
pub const ALWAYS: [Named; 15] = [
    ("G1 an effect and its record are one commit", effects_are_recorded),
    ("G2 an effect is committed once", effects_are_single),
    ("G3 a success that comes late is undone", late_successes_are_undone),
    ("G4 nothing is sent that was not committed", sent_was_committed),
    ("G4 what was settled is stored", settled_is_stored),
    ("G4 what was committed is accepted", committed_is_accepted),
    ("G5 completed: everything took effect", completed_is_whole),
    ("G5 compensated: nothing stands", compensated_is_nothing),
    ("G5 what is undone is undone in reverse", undone_in_reverse),
    ("G5 what was taken back stays so", taken_back_stays_so),
    ("G5 nothing stands still", nothing_stands_still),
    ("G6 what a client was told is durable", told_is_durable),
    ("G7 who lost the claim decides nothing", |_, world| !world.decided_stale),
    ("G9 events are accepted in commit order", |_, world| world.accepted.is_sorted()),
    ("G11 an open saga waits for something", open_sagas_wait),
];

/// What every run comes to.
pub const EVENTUALLY: [Named; 1] = [("G5 a saga ends, or needs a person", |model, world| model.has_ended(world))];

/// What the models must reach, or they prove nothing.
pub const SOMETIMES: [Named; 18] = [
    ("completed", |_, world| has_phase(world, Phase::Completed)),
    ("compensated", |_, world| has_phase(world, Phase::Compensated)),
    ("stuck", |_, world| world.services[0].state().is_some_and(|state| state.stuck.is_some())),
    ("an undo of an unknown outcome", |_, world| {
        world.services.iter().any(|service| service.work.values().any(|work| !work.known))
    }),
    ("an undo overtook its do", overtaken),
    ("a barred command was refused", barred_was_refused),
    ("a step was taken over", |_, world| {
        is_any(world, |service| service.work.values().any(|work| work.is_recovered && work.is_leased))
    }),
    ("a stale owner has its answer", stale_owner_answered),
    ("a success was noted late", |_, world| is_any(world, |service| service.work.values().any(|work| work.is_late))),
    ("a late success is brought to its saga", |_, world| {
        is_any(world, |service| service.tasks.iter().any(|task| task.stage == Stage::Late))
    }),
    ("a call whose claim was lost was not answered", |_, world| {
        is_any(world, |service| service.tasks.iter().any(|task| task.stage == Stage::LateUnknown))
    }),
    ("what waited to begin was taken over", |_, world| {
        let waits = |task: &crate::world::Task| task.stage == Stage::Waiting && Protocol::is_stale(world, 0, task);
        world.services[0].tasks.iter().any(waits)
    }),
    ("a step was undone twice", |_, world| is_any(world, |service| service.records.keys().any(|key| key.round > 1))),
    ("a message was lost", |model, world| world.left.losses < model.bounds.faults.losses),
    ("a message came again", |model, world| world.left.repeats < model.bounds.faults.repeats),
    ("a command was sent again", |_, world| world.services[0].work.values().any(|work| work.sent > 1)),
    ("a key was refused", |_, world| world.clients.iter().any(|client| client.told == Some(false))),
    ("two events wait for each other", |_, world| {
        world.services[0].outbox.iter().filter(|message| message.is_event()).count() > 1
    }),
];

fn is_any(world: &World, is: impl Fn(&Service) -> bool) -> bool {
    world.services.iter().any(is)
}

fn has_phase(world: &World, phase: Phase) -> bool {
    world.services[0].state().is_some_and(|state| state.phase == phase && state.stuck.is_none())
}

/// The record of a transactional step key says done if and only if its effect was committed, and the saga knows it.
fn effects_are_recorded(model: &Protocol, world: &World) -> bool {
    world.services.iter().enumerate().all(|(at, service)| {
        let is_here = |step: usize| model.shape(at).steps[step].effect == Effect::Transactional;
        let took_effect = |key| service.effects.get(key).is_some_and(|count| *count > 0);
        let is_done = |key| service.records.get(key) == Some(&RecordedOutcome::Done);
        let keys = service.effects.keys().chain(service.records.keys());
        let knows = |step: usize| {
            let phase = service.state().map(|state| state.steps[step].phase);
            matches!(phase, Some(StepPhase::Done | StepPhase::Undoing | StepPhase::Undone))
        };
        keys.filter(|key| is_here(key.step))
            .all(|key| took_effect(key) == is_done(key) && (!took_effect(key) || key.is_undo() || knows(key.step)))
    })
}

fn effects_are_single(_: &Protocol, world: &World) -> bool {
    world.services.iter().all(|service| service.effects.values().all(|count| *count <= 1))
}

/// Once no task works on it, a saga that ended otherwise knows of each success outside.
fn late_successes_are_undone(model: &Protocol, world: &World) -> bool {
    let Some(state) = world.services[0].state() else { return true };
    let unknown_to_saga = |step: usize| {
        model.bounds.steps[step] == Place::Outside
            && model.stands(world, step) > 0
            && !matches!(state.steps[step].phase, StepPhase::Done | StepPhase::Started | StepPhase::Undoing)
            && !is_in_hand(world, step)
    };
    !matches!(state.phase, Phase::Completed | Phase::Compensated)
        || state.stuck.is_some()
        || !(0..state.steps.len()).any(unknown_to_saga)
}

fn is_in_hand(world: &World, step: usize) -> bool {
    world.services[0].tasks.iter().any(|task| task.key.step == step)
}

fn sent_was_committed(model: &Protocol, world: &World) -> bool {
    model.bounds.is_sticky || world.network.keys().all(|message| world.committed.contains(message))
}

/// What a receiver has in memory only, the broker still has.
fn settled_is_stored(_: &Protocol, world: &World) -> bool {
    world.services.iter().all(|service| service.in_hand.iter().all(|message| world.network.contains_key(message)))
}

fn committed_is_accepted(model: &Protocol, world: &World) -> bool {
    let count = world.services[0].state().map_or(0, |state| state.messages);
    world.accepted.len() as u64 == count || !model.is_at_rest(world)
}

fn completed_is_whole(model: &Protocol, world: &World) -> bool {
    !has_phase(world, Phase::Completed)
        || model.bounds.has_stranger
        || (0..model.bounds.steps.len()).all(|step| model.stands(world, step) == 1)
}

fn compensated_is_nothing(model: &Protocol, world: &World) -> bool {
    !has_phase(world, Phase::Compensated)
        || (0..model.bounds.steps.len()).all(|step| model.stands(world, step) == 0 || is_in_hand(world, step))
}

/// While a step stands, no step before it was undone. What comes late comes behind all others.
fn undone_in_reverse(model: &Protocol, world: &World) -> bool {
    let Some(state) = world.services[0].state() else { return true };
    let was_undone = |step: usize| state.steps[step].phase == StepPhase::Undone;
    let is_late =
        |step: usize| model.bounds.steps[step] == Place::Outside && world.left.pauses < model.bounds.faults.pauses;
    let mut later = (0..state.steps.len()).filter(|&step| model.stands(world, step) > 0 && !is_late(step));
    later.all(|step| !(0..step).any(was_undone))
}

/// Once the stranger was told that the step is undone, it is, and no late delivery does it.
fn taken_back_stays_so(model: &Protocol, world: &World) -> bool {
    let is_told = |body: &Body| matches!(body, Body::Reply { said: Said(Answer::Undone), .. });
    let was_told = || world.network.keys().any(|message| message.to == STRANGER && is_told(&message.body));
    !model.bounds.has_stranger || !was_told() || world.services[1].stands(0) == 0
}

fn nothing_stands_still(model: &Protocol, world: &World) -> bool {
    model.has_ended(world) || !model.is_at_rest(world)
}

fn told_is_durable(_: &Protocol, world: &World) -> bool {
    let mut own = world.clients.iter().filter(|client| client.told == Some(true));
    own.all(|client| world.services[0].saga.as_ref().is_some_and(|saga| saga.payload == client.payload))
}

/// A saga that has not ended and needs no operator has a row of work, or what it waits for is forgotten.
fn open_sagas_wait(_: &Protocol, world: &World) -> bool {
    world.services.iter().all(|service| {
        let is_open = service
            .state()
            .is_some_and(|state| matches!(state.phase, Phase::Running | Phase::Compensating) && state.stuck.is_none());
        !is_open || !service.work.is_empty()
    })
}

/// A host knows of an undo, and its do is still on its way.
fn overtaken(_: &Protocol, world: &World) -> bool {
    let is_barred = |service: &Service| service.state().is_some_and(|state| state.steps[0].phase == StepPhase::Ready);
    world.services.iter().skip(1).any(is_barred)
}

fn barred_was_refused(_: &Protocol, world: &World) -> bool {
    world.network.keys().any(|message| matches!(message.body, Body::Reply { said: Said(Answer::Cancelled), .. }))
}

fn stale_owner_answered(_: &Protocol, world: &World) -> bool {
    let is_answered = |stage| matches!(stage, Stage::Answered(_));
    world.services[0].tasks.iter().any(|task| is_answered(task.stage) && Protocol::is_stale(world, 0, task))
}
