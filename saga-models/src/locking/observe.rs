//! What a commit does, and what its saga hears of it.

use super::mistake::Mistake;
use super::protocol::Locking;
use super::row::{Row, RowState};
use super::table::Table;
use super::transaction::{Answer, Kind, Phase, Transaction};
use super::world::{Saga, Stage, World};

impl Locking {
    /// A transaction commits. Its process hears of it or not.
    pub(super) fn commit(&self, world: &mut World, saga: usize, is_heard: bool) {
        let Some(transaction) = world.sagas[saga].transaction.take() else { return };
        let Phase::Committing(writes) = &transaction.phase else { return };
        let before = world.table.clone();
        for write in writes {
            world.table.write(write);
        }
        note_grants(world, &before, transaction.kind, saga);
        if !is_heard {
            world.left.lost_answers -= 1;
        }
        match transaction.kind {
            Kind::Ask | Kind::GiveUp | Kind::Start if is_heard => hear(world, saga, transaction.answer),
            Kind::Ask | Kind::GiveUp | Kind::Start => world.sagas[saga].unheard = transaction.answer,
            Kind::Try => take_within(world, saga, &transaction),
            // The end of a saga is in the same commit. Only with this mistake it is not.
            Kind::End if self.has(Mistake::EndsLocksOfOthers) && !is_heard => {}
            Kind::End => {
                world.sagas[saga].end();
                if self.has(Mistake::HandsOverLater) {
                    self.begin(world, saga, Kind::HandOver);
                }
            }
            Kind::EndEarly => world.sagas[saga].stage = Stage::Compensating,
            Kind::HandOver => {}
        }
    }
}

/// A transaction that took a lock ends, and the lock with it.
fn take_within(world: &mut World, saga: usize, transaction: &Transaction) {
    let Some(Answer::Granted(tokens)) = transaction.answer else { return };
    for &entity in &transaction.entities {
        note_token(world, entity, tokens[entity]);
        world.broken.wrote_between |= world.sagas[1 - saga].wrote[entity];
    }
    world.reached.taken_within = true;
    world.sagas[saga].end();
}

/// What the commit of a transaction has granted.
fn note_grants(world: &mut World, before: &Table, kind: Kind, saga: usize) {
    let after = world.table.clone();
    for row in &after.rows {
        let was = before.rows.iter().find(|was| was.number == row.number);
        let was_state = was.map_or(RowState::Waiting, |was| was.state);
        let is_new = row.state != was_state;
        world.reached.ring_ended |= is_new && row.state == RowState::Deadlock;
        world.reached.timed_out |= is_new && row.state == RowState::TimedOut;
        if !is_new || row.state != RowState::Granted {
            continue;
        }
        world.reached.kept |= kind == Kind::Start;
        world.reached.handed_over |= kind == Kind::End && row.owner != saga;
        world.broken.granted_late |= was_state != RowState::Waiting;
        for entity in (0..2).filter(|&entity| row.entities[entity]) {
            if before.token_of(row.owner, entity).is_some() {
                world.reached.had_already = true;
                continue;
            }
            note_token(world, entity, row.tokens[entity]);
            world.broken.overtaken |= after.on(entity).any(|other| is_overtaken(&after, other, row, entity));
        }
    }
}

/// Whether another saga asked earlier for this entity, and still waits for it.
fn is_overtaken(table: &Table, other: &Row, granted: &Row, entity: usize) -> bool {
    let still_waits = other.state == RowState::Waiting && table.token_of(other.owner, entity).is_none();
    still_waits && other.owner != granted.owner && other.number < granted.number
}

fn note_token(world: &mut World, entity: usize, token: u8) {
    world.broken.token_again |= token <= world.highest[entity];
    world.highest[entity] = world.highest[entity].max(token);
}

/// The saga gets the answer to its request. With its lock, it writes at once.
fn hear(world: &mut World, saga: usize, answer: Option<Answer>) {
    let Some(answer) = answer else { return };
    let others = world.sagas[1 - saga].wrote;
    let its = &mut world.sagas[saga];
    let unheard = its.unheard.take();
    let may_change = matches!(unheard, None | Some(Answer::Waits));
    world.broken.another_answer |= !may_change && unheard != Some(answer);
    match answer {
        Answer::Granted(tokens) => {
            world.reached.heard_again |= unheard == Some(answer);
            let Saga { locks, granted, tokens: known, .. } = its;
            for entity in (0..2).filter(|&entity| locks[*granted][entity]) {
                world.broken.another_answer |= known[entity].is_some_and(|known| known != tokens[entity]);
                known[entity] = Some(tokens[entity]);
                world.broken.wrote_between |= others[entity];
                its.wrote[entity] = true;
            }
            its.granted += 1;
            its.stage = Stage::Running;
        }
        Answer::Waits => its.stage = Stage::Waiting,
        Answer::GaveUp => its.stage = Stage::Compensating,
    }
}
