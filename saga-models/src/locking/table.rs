use std::collections::BTreeMap;

use saga_core::Key;
use saga_core::store::{WaitsFor, youngest_in_ring};

use super::row::{Row, RowState, Write};

/// The rows of the database, by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Table {
    /// The rows.
    pub rows: Vec<Row>,
}

/// How requests are granted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Whether a request looks at those that wait in front of it.
    pub(super) keeps_order: bool,
    /// Whether a request that gave up is in the queue.
    pub(super) keeps_given_up: bool,
    /// Whether rings are looked for.
    pub(super) ends_rings: bool,
}

impl Rules {
    /// As they are written.
    pub(super) const SOUND: Self = Self { keeps_order: true, keeps_given_up: false, ends_rings: true };
}

impl Table {
    pub(super) fn find(&self, owner: usize, name: usize) -> Option<&Row> {
        self.rows.iter().find(|row| (row.owner, row.name) == (owner, name))
    }

    /// The locks and the waiting requests on an entity.
    pub(super) fn on(&self, entity: usize) -> impl Iterator<Item = &Row> {
        let is_queued = |row: &&Row| matches!(row.state, RowState::Waiting | RowState::Granted);
        self.rows.iter().filter(move |row| row.entities[entity]).filter(is_queued)
    }

    /// Whether there are others in the queues of these entities than a saga, whose own locks end; without such a saga, any.
    pub(super) fn is_in_queue(&self, entities: &[usize], ending: Option<usize>, rules: Rules) -> bool {
        let stays = |row: &Row| rules.keeps_given_up && row.state == RowState::TimedOut;
        let is_queued = |row: &Row| matches!(row.state, RowState::Waiting | RowState::Granted) || stays(row);
        let mut others = self.rows.iter().filter(|row| Some(row.owner) != ending && is_queued(row));
        others.any(|row| entities.iter().any(|&entity| row.entities[entity]))
    }

    /// The token that a saga has of the entity.
    pub(super) fn token_of(&self, owner: usize, entity: usize) -> Option<u8> {
        let mut its = self.on(entity).filter(|row| row.owner == owner && row.state == RowState::Granted);
        its.next().map(|row| row.tokens[entity])
    }

    /// The sagas that a request waits for, with whether they have an entity of it.
    pub(super) fn blockers(&self, row: &Row, rules: Rules) -> BTreeMap<usize, bool> {
        let mut found = BTreeMap::new();
        for entity in (0..2).filter(|&entity| row.entities[entity] && self.token_of(row.owner, entity).is_none()) {
            for other in self.on(entity).filter(|other| other.owner != row.owner) {
                let has = other.state == RowState::Granted;
                if has || (rules.keeps_order && other.number < row.number) {
                    *found.entry(other.owner).or_default() |= has;
                }
            }
        }
        found
    }

    /// Who waits for whom.
    pub(super) fn waits(&self) -> Vec<WaitsFor> {
        let waiting = self.rows.iter().filter(|row| row.state == RowState::Waiting);
        let waits = waiting.flat_map(|row| {
            let own = self.rows.iter().filter(|other| other.owner == row.owner);
            let first = u64::from(own.map(|other| other.number).min().unwrap_or(row.number));
            let before = self.blockers(row, Rules::SOUND).into_iter();
            before.map(move |(holder, has)| WaitsFor { waits: key_of(row.owner), first, holder: key_of(holder), has })
        });
        waits.collect()
    }

    /// Whether this saga waits for itself over the other one.
    pub(super) fn has_ring(&self, owner: usize) -> bool {
        youngest_in_ring(&self.waits(), &key_of(owner)).is_some()
    }

    /// Ends each ring of waits that this saga is part of.
    pub(super) fn end_rings(&mut self, owner: usize, rules: Rules, next: &mut impl FnMut(&Self, usize) -> u8) {
        while let Some((youngest, _)) = youngest_in_ring(&self.waits(), &key_of(owner)).filter(|_| rules.ends_rings) {
            let gives_up = |row: &&mut Row| key_of(row.owner) == youngest && row.state == RowState::Waiting;
            self.rows.iter_mut().filter(gives_up).for_each(|row| row.state = RowState::Deadlock);
            self.hand_over(rules, next);
        }
    }

    /// Grants what is not blocked any more.
    pub(super) fn hand_over(&mut self, rules: Rules, next: &mut impl FnMut(&Self, usize) -> u8) {
        let is_free = |table: &Self, row: &Row| {
            let is_waiting =
                row.state == RowState::Waiting || (rules.keeps_given_up && row.state == RowState::TimedOut);
            is_waiting && table.blockers(row, rules).is_empty()
        };
        while let Some(place) = self.rows.iter().position(|row| is_free(self, row)) {
            self.grant(place, next);
        }
    }

    /// Grants a request. A saga that has an entity keeps its token.
    pub(super) fn grant(&mut self, place: usize, next: &mut impl FnMut(&Self, usize) -> u8) {
        let Row { owner, entities, .. } = self.rows[place];
        let mut tokens = [0; 2];
        for entity in (0..2).filter(|&entity| entities[entity]) {
            tokens[entity] = self.token_of(owner, entity).unwrap_or_else(|| next(self, entity));
        }
        let row = &mut self.rows[place];
        (row.state, row.tokens) = (RowState::Granted, tokens);
    }

    /// What makes this table of another one.
    pub(super) fn writes_since(&self, before: &Self) -> Vec<Write> {
        let is_in = |table: &Self, number: u8| table.rows.iter().any(|row| row.number == number);
        let gone = before.rows.iter().filter(|row| !is_in(self, row.number)).map(|row| Write::Delete(row.number));
        let changed =
            self.rows.iter().filter(|row| !before.rows.contains(row)).map(|row| {
                if is_in(before, row.number) { Write::Update(row.clone()) } else { Write::Insert(row.clone()) }
            });
        gone.chain(changed).collect()
    }

    /// As a database does it: a row that is gone is not updated.
    pub(super) fn write(&mut self, write: &Write) {
        match write {
            Write::Delete(number) => self.rows.retain(|row| row.number != *number),
            Write::Insert(row) => {
                self.rows.push(row.clone());
                self.rows.sort_by_key(|row| row.number);
            }
            Write::Update(row) => {
                if let Some(found) = self.rows.iter_mut().find(|found| found.number == row.number) {
                    *found = row.clone();
                }
            }
        }
    }
}

#[expect(clippy::expect_used, reason = "a letter is a key")]
fn key_of(saga: usize) -> Key {
    Key::new(if saga == 0 { "a" } else { "b" }).expect("a letter is a key")
}
