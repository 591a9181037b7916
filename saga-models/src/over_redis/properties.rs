//! What must hold in every state, and what must be reached.

use super::protocol::OverRedis;
use super::world::{Hold, KEYS, World};

type Holds = fn(&OverRedis, &World) -> bool;

/// What holds in every state.
pub(super) const ALWAYS: [(&str, Holds); 6] = [
    ("R-CAPACITY no more is confirmed than there is", |_, world| world.confirmed.iter().flatten().count() <= 1),
    ("R-CAPACITY without a flush no more is taken than there is", |_, world| {
        let is_taken = |key: &usize| world.confirmed[*key].is_some() || world.holds[*key].is_some();
        world.was_flushed || (0..KEYS).filter(is_taken).count() <= 1
    }),
    ("R-CAPACITY Redis never believes that more is free", |_, world| {
        let is_behind = world.known.is_some_and(|known| known.epoch == world.epoch && !known.is_confirmed);
        let is_marked = |key: usize| matches!(world.holds[key], Some(Hold::Marked(_)));
        let unmarked = (0..KEYS).any(|key| world.confirmed[key].is_some() && !is_marked(key));
        !(world.is_in_epoch() && is_behind && unmarked)
    }),
    ("R-DURABLE what was answered as confirmed is in SQL", |_, world| {
        (0..KEYS).all(|key| !world.told_confirmed[key] || world.confirmed[key].is_some())
    }),
    ("R-KEY a key that is confirmed is not held again", |_, world| {
        (0..KEYS).all(|key| world.confirmed[key].is_none() || world.told_held[key] <= world.confirmed[key])
    }),
    ("R-KEY a key that SQL has is not held without a read", |_, world| !world.was_unread),
];

/// What is reached, so that the properties say something.
pub(super) const SOMETIMES: [(&str, Holds); 4] = [
    ("a confirmation after a flush", |_, world| world.was_flushed && world.told_confirmed[0]),
    ("a client is told twice that it holds", |_, world| world.told_held[0].is_some_and(|(epoch, _)| epoch > 1)),
    ("all keys are loaded behind a flush", |_, world| world.was_flushed && world.is_loaded && world.noted[0]),
    ("more is held than there is", |_, world| world.is_confirmed() && world.holds.iter().flatten().count() == 1),
];
