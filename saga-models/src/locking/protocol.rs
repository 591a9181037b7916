use std::collections::BTreeSet;

use super::mistake::Mistake;
use super::row::{Row, RowState};
use super::table::{Rules, Table};
use super::transaction::{Advisory, Answer, Kind, Phase, Transaction};
use super::world::{Saga, Stage, World};

/// Semantic locks, and perhaps a mistake in how they are kept.
#[derive(Debug, Clone)]
pub struct Locking {
    pub(super) mistake: Option<Mistake>,
}

impl Locking {
    /// The model without a mistake.
    pub fn sound() -> Self {
        Self { mistake: None }
    }

    /// The model with a mistake.
    pub fn with(mistake: Mistake) -> Self {
        Self { mistake: Some(mistake) }
    }

    pub(super) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(super) fn rules(&self) -> Rules {
        Rules {
            keeps_order: !self.has(Mistake::Overtakes),
            keeps_given_up: self.has(Mistake::GivesUpAndStays),
            ends_rings: !self.has(Mistake::LooksForNoRings),
        }
    }

    /// A transaction begins.
    pub(super) fn begin(&self, world: &mut World, saga: usize, kind: Kind) {
        let entities = self.entities_of(world, saga, kind);
        let mut wanted: Vec<_> = entities.iter().copied().map(Advisory::Entity).collect();
        if self.has(Mistake::UnsortedTaking) && saga == 1 {
            wanted.reverse();
        }
        let is_alone = !self.has_met(&world.table, saga, kind, &entities);
        let is_unlocked = self.has(Mistake::EndsWithoutTheEntities) && kind == Kind::End && is_alone;
        let early_token = if self.has(Mistake::TokenBeforeTheLock) { next(&mut world.last) } else { 0 };
        world.sagas[saga].transaction = Some(Transaction {
            kind,
            phase: if is_unlocked { Phase::Deciding } else { Phase::Locking(wanted) },
            entities,
            has_met: is_unlocked.then_some(false),
            locked: BTreeSet::new(),
            begun_with: if self.has(Mistake::ReadsBeforeItLocks) { world.table.clone() } else { Table::default() },
            early_token,
            answer: None,
        });
    }

    /// What the transaction of a saga is about.
    fn entities_of(&self, world: &World, saga: usize, kind: Kind) -> Vec<usize> {
        let Saga { locks, granted, .. } = &world.sagas[saga];
        let is_wanted = |entity: &usize| match kind {
            Kind::Ask | Kind::GiveUp | Kind::Try | Kind::Start => locks[*granted][*entity],
            Kind::End if self.has(Mistake::EndsLocksOfOthers) => locks.iter().any(|lock| lock[*entity]),
            Kind::End | Kind::EndEarly => world.table.on(*entity).any(|row| row.owner == saga),
            Kind::HandOver => true,
        };
        (0..2).filter(is_wanted).collect()
    }

    /// Whether the transaction of a saga does not wait for a lock that another one has.
    pub(super) fn may_go_on(&self, world: &World, saga: usize) -> bool {
        let Some(transaction) = &world.sagas[saga].transaction else { return false };
        match &transaction.phase {
            Phase::Locking(_) if transaction.kind.only_tries() => true,
            Phase::Locking(wanted) => self.next_of(transaction, wanted).iter().all(|next| is_free(world, saga, *next)),
            _ => true,
        }
    }

    /// The locks that the transaction takes next: those of a request together, since it has none while it waits for another one.
    fn next_of<'a>(&self, transaction: &Transaction, wanted: &'a [Advisory]) -> &'a [Advisory] {
        let together = transaction.kind.asks() && !self.has(Mistake::UnsortedTaking);
        if together { wanted } else { &wanted[..wanted.len().min(1)] }
    }

    /// A transaction does its next step before its commit. A step that cannot take its lock ends its transaction.
    pub(super) fn go_on(&self, world: &mut World, saga: usize) {
        let Some(mut transaction) = world.sagas[saga].transaction.take() else { return };
        match &transaction.phase {
            Phase::Locking(wanted) if !wanted.is_empty() => {
                let next = self.next_of(&transaction, wanted).to_vec();
                if !next.iter().all(|next| is_free(world, saga, *next)) {
                    return refuse(world, saga);
                }
                transaction.phase = match next[..] {
                    [Advisory::Waits] => Phase::Deciding,
                    _ => Phase::Locking(wanted[next.len()..].to_vec()),
                };
                transaction.locked.extend(next);
            }
            Phase::Locking(_) => {
                let has_met = self.has_met(&world.table, saga, transaction.kind, &transaction.entities);
                transaction.has_met = Some(has_met);
                if transaction.kind.only_tries() && has_met && !self.has(Mistake::TriesWithoutLooking) {
                    return refuse(world, saga);
                }
                let is_alone = !has_met || transaction.kind.only_tries() || self.has(Mistake::NoLockOfWaits);
                transaction.phase = if is_alone { Phase::Deciding } else { Phase::Locking(vec![Advisory::Waits]) };
            }
            Phase::Deciding => self.decide(world, saga, &mut transaction),
            Phase::Committing(_) => {}
        }
        world.sagas[saga].transaction = Some(transaction);
    }

    /// Whether rows that are not those of the transaction's own locks name its entities.
    fn has_met(&self, table: &Table, saga: usize, kind: Kind, entities: &[usize]) -> bool {
        let ends = matches!(kind, Kind::End | Kind::EndEarly);
        table.is_in_queue(entities, ends.then_some(saga), self.rules())
    }

    /// A transaction reads the rows, and decides what it writes.
    fn decide(&self, world: &mut World, saga: usize, transaction: &mut Transaction) {
        let World { table, last, sagas, .. } = world;
        let early = transaction.early_token;
        let mut next = |table: &Table, entity: usize| match self.mistake {
            Some(Mistake::TokenOfTheRows) => 1 + table.on(entity).map(|row| row.tokens[entity]).max().unwrap_or(0),
            Some(Mistake::TokenBeforeTheLock) => early,
            _ => next(last),
        };
        let before = if self.has(Mistake::ReadsBeforeItLocks) { &transaction.begun_with } else { &*table };
        let mut after = before.clone();
        match transaction.kind {
            Kind::Ask | Kind::GiveUp => {
                let is_late = transaction.kind == Kind::GiveUp;
                transaction.answer = Some(self.ask(&mut after, (saga, &sagas[saga]), is_late, &mut next));
            }
            Kind::Try | Kind::Start => {
                let mut tokens = [0; 2];
                for &entity in &transaction.entities {
                    tokens[entity] = next(&after, entity);
                }
                transaction.answer = Some(Answer::Granted(tokens));
                if transaction.kind == Kind::Start {
                    let highest = after.rows.iter().map(|row| row.number).max().unwrap_or(0);
                    let (number, entities) = (next(&after, 0).max(highest + 1), sagas[saga].locks[0]);
                    after.rows.push(Row { number, owner: saga, name: 0, entities, state: RowState::Granted, tokens });
                }
            }
            Kind::End | Kind::EndEarly => {
                let of_others = self.has(Mistake::EndsLocksOfOthers);
                let is_on = |row: &Row| transaction.entities.iter().any(|&entity| row.entities[entity]);
                let ends = |row: &Row| row.owner == saga || (of_others && row.state == RowState::Granted && is_on(row));
                after.rows.retain(|row| !ends(row) || self.has(Mistake::KeepsItsLocks));
                if transaction.has_met == Some(true) && !self.has(Mistake::HandsOverLater) {
                    after.hand_over(self.rules(), &mut next);
                }
            }
            Kind::HandOver => after.hand_over(self.rules(), &mut next),
        }
        transaction.phase = Phase::Committing(after.writes_since(before));
    }

    /// A saga asks for its next lock, for the first time or again.
    fn ask(
        &self,
        table: &mut Table,
        (owner, saga): (usize, &Saga),
        is_late: bool,
        next: &mut impl FnMut(&Table, usize) -> u8,
    ) -> Answer {
        let rules = self.rules();
        let name = saga.granted;
        let found = table.rows.iter().position(|row| (row.owner, row.name) == (owner, name));
        if let Some(place) = found {
            if is_late && table.rows[place].state == RowState::Waiting {
                table.rows[place].state = RowState::TimedOut;
                table.hand_over(rules, next);
            }
            if self.has(Mistake::GrantsAgain) && table.rows[place].state == RowState::Granted {
                table.rows[place].state = RowState::Waiting;
                table.grant(place, next);
            }
        } else {
            // The number comes from the sequence of the tokens.
            let highest = table.rows.iter().map(|row| row.number).max().unwrap_or(0);
            let number = next(table, 0).max(highest + 1);
            let entities = saga.locks[name];
            table.rows.push(Row { number, owner, name, entities, state: RowState::Waiting, tokens: [0; 2] });
            let place = table.rows.len() - 1;
            if table.blockers(&table.rows[place], rules).is_empty() {
                table.grant(place, next);
            } else {
                table.end_rings(owner, rules, next);
            }
        }
        match table.find(owner, name) {
            Some(Row { state: RowState::Granted, tokens, .. }) => Answer::Granted(*tokens),
            Some(Row { state: RowState::Waiting, .. }) => Answer::Waits,
            _ => Answer::GaveUp,
        }
    }
}

/// Whether no other transaction has this lock.
fn is_free(world: &World, saga: usize, wanted: Advisory) -> bool {
    let other = &world.sagas[1 - saga].transaction;
    other.as_ref().is_none_or(|other| !other.locked.contains(&wanted))
}

/// The saga could not take its lock, and has to ask for it.
fn refuse(world: &mut World, saga: usize) {
    let refused = &mut world.sagas[saga];
    (refused.transaction, refused.must_ask) = (None, true);
    world.reached.refused = true;
    debug_assert!(refused.stage == Stage::Running, "only a saga that runs tries to take a lock");
}

fn next(last: &mut u8) -> u8 {
    *last += 1;
    *last
}
