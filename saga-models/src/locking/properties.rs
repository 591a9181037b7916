//! What must hold of semantic locks, by the clauses of `saga_core::store::SemanticLocks`.

use super::protocol::Locking;
use super::row::RowState;
use super::table::Rules;
use super::world::{Saga, Stage, World};

type Named = (&'static str, fn(&Locking, &World) -> bool);

/// What holds at every moment.
pub(super) const ALWAYS: &[Named] = &[
    ("S-LOCK-1 two sagas never have one entity", |_, world| {
        let [first, second] = &world.sagas;
        (0..2).all(|entity| {
            let has_row = |saga| world.table.token_of(saga, entity).is_some();
            let is_told = |saga: &Saga| saga.tokens[entity].is_some();
            !(is_told(first) && is_told(second) || has_row(0) && has_row(1))
        })
    }),
    ("S-LOCK-1 no saga writes what another one may still undo", |_, world| !world.broken.wrote_between),
    ("S-LOCK-2 the tokens of an entity grow", |_, world| !world.broken.token_again),
    ("S-LOCK-3 no request overtakes one that waits", |_, world| !world.broken.overtaken),
    ("S-LOCK-4 a request that is repeated gets the same answer", |_, world| !world.broken.another_answer),
    ("S-LOCK-5 a request that is not blocked does not wait", |_, world| {
        let mut waiting = world.table.rows.iter().filter(|row| row.state == RowState::Waiting);
        waiting.all(|row| !world.table.blockers(row, Rules::SOUND).is_empty())
    }),
    ("S-LOCK-5 a saga that has ended has no lock", |_, world| {
        let has_ended = |saga: usize| world.sagas[saga].stage == Stage::Ended;
        world.table.rows.iter().all(|row| !has_ended(row.owner))
    }),
    ("S-LOCK-6 no ring of waits is committed", |_, world| (0..2).all(|saga| !world.table.has_ring(saga))),
    ("S-LOCK-7 a request that gave up is not granted", |_, world| !world.broken.granted_late),
    ("each saga comes to its end", |model, world| {
        let have_ended = world.sagas.iter().all(|saga| saga.stage == Stage::Ended);
        have_ended || !model.progress(world).is_empty()
    }),
];

/// What must be reached, or else the model says nothing.
pub(super) const SOMETIMES: &[Named] = &[
    ("a lock is handed over", |_, world| world.reached.handed_over),
    ("a ring is ended", |_, world| world.reached.ring_ended),
    ("a saga waits as long as it may", |_, world| world.reached.timed_out),
    ("an answer is heard the second time", |_, world| world.reached.heard_again),
    ("a lock ends with the transaction that took it", |_, world| world.reached.taken_within),
    ("a saga keeps a lock of the transaction that started it", |_, world| world.reached.kept),
    ("a transaction finds an entity taken", |_, world| world.reached.refused),
    ("a saga locks what it has", |_, world| world.reached.had_already),
];
