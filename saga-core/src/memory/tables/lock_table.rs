//! The semantic locks, and the requests that wait for some.

use std::collections::{BTreeMap, BTreeSet};

use crate::key::{Key, Tenant};
use crate::memory::clock::Moment;
use crate::store::{
    Entity, KeptLock, LockAnswer, LockFilter, LockRequest, LockState, SagaId, StoredLock, Timestamp, Unlock, WaitsFor,
    WorkId, youngest_in_ring,
};

/// The semantic locks of all tenants.
#[derive(Debug, Default)]
pub(in crate::memory) struct LockTable {
    /// The last number that was given: of a request, or as a token.
    last: u64,
    rows: BTreeMap<u64, Row>,
    by_name: BTreeMap<(SagaId, String), u64>,
    by_entity: BTreeMap<(Tenant, Entity), BTreeSet<u64>>,
}

#[derive(Debug)]
struct Row {
    asked: LockRequest,
    state: LockState,
    tokens: Vec<u64>,
    asked_at: Timestamp,
    granted_at: Option<Timestamp>,
}

impl Row {
    /// Until when it waits.
    fn until(&self) -> Timestamp {
        self.asked_at.plus(self.asked.within)
    }

    /// Whether it has its entities or waits for them.
    fn is_queued(&self) -> bool {
        matches!(self.state, LockState::Waiting | LockState::Granted)
    }

    fn entity_keys(&self) -> impl Iterator<Item = (Tenant, Entity)> {
        self.asked.entities.iter().map(|entity| (self.asked.tenant.clone(), entity.clone()))
    }
}

impl LockTable {
    /// Asks for a lock. The work rows of other requests whose state changed are due now.
    pub(in crate::memory) fn ask(&mut self, request: LockRequest, now: Timestamp) -> (LockAnswer, Vec<WorkId>) {
        let name = (request.saga, request.name.clone());
        let mut woken = Vec::new();
        let number = match self.by_name.get(&name).copied() {
            Some(number) => {
                self.ask_again(number, &request, now, &mut woken);
                number
            }
            None => self.insert(name, request, now, &mut woken),
        };
        let row = &self.rows[&number];
        let answer = match &row.state {
            LockState::Granted => LockAnswer::Granted(row.tokens.clone()),
            LockState::Waiting => LockAnswer::Waits(row.until().since(now)),
            LockState::TimedOut(holder) => LockAnswer::TimedOut(holder.clone()),
            LockState::Deadlock(with) => LockAnswer::Deadlock(with.clone()),
        };
        woken.retain(|work| *work != row.asked.work.id);
        (answer, woken)
    }

    /// Whether the saga has asked for a lock of this name.
    pub(in crate::memory) fn is_asked_for(&self, request: &LockRequest) -> bool {
        self.by_name.contains_key(&(request.saga, request.name.clone()))
    }

    /// The tokens of the same request, if it was granted before.
    pub(in crate::memory) fn granted_before(&self, request: &LockRequest) -> Option<Vec<u64>> {
        let row = &self.rows[self.by_name.get(&(request.saga, request.name.clone()))?];
        let is_granted = row.state == LockState::Granted && row.asked.entities == request.entities;
        is_granted.then(|| row.tokens.clone())
    }

    /// Whether no request has an entity of this one or waits for it.
    pub(in crate::memory) fn is_free(&self, request: &LockRequest) -> bool {
        let is_named = |entity: &Entity| self.by_entity.contains_key(&(request.tenant.clone(), entity.clone()));
        !request.entities.iter().any(is_named)
    }

    /// Keeps a lock that a transaction took.
    pub(in crate::memory) fn keep(&mut self, lock: &KeptLock, now: Timestamp) {
        let (asked, tokens) = (lock.wanted.request.clone(), lock.tokens.clone());
        let name = (asked.saga, asked.name.clone());
        let row = Row { asked, state: LockState::Granted, tokens, asked_at: now, granted_at: Some(now) };
        self.add(name, row);
    }

    /// The next number or token.
    pub(in crate::memory) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Ends locks and requests, and grants what is not blocked any more. Returns the work rows that are due now.
    pub(in crate::memory) fn unlock(&mut self, unlocks: &[Unlock], now: Timestamp) -> Vec<WorkId> {
        let ends = |row: &Row| {
            unlocks.iter().any(|unlock| match unlock {
                Unlock::Owner(tenant, owner) => (&row.asked.tenant, &row.asked.owner) == (tenant, owner),
                Unlock::Lock(_, saga, name) => (row.asked.saga, &row.asked.name) == (*saga, name),
            })
        };
        let ended: Vec<u64> = self.rows.iter().filter(|(_, row)| ends(row)).map(|(number, _)| *number).collect();
        let mut entities = BTreeSet::new();
        for number in ended {
            entities.extend(self.leave_queue(number));
            if let Some(row) = self.rows.remove(&number) {
                self.by_name.remove(&(row.asked.saga, row.asked.name));
            }
        }
        let mut woken = Vec::new();
        self.hand_over(&entities, now, &mut woken);
        woken
    }

    /// The locks and requests of steps whose work rows are gone, oldest first. `is_gone` says whether a work row is gone.
    pub(in crate::memory) fn abandoned(&self, is_gone: impl Fn(WorkId) -> bool, limit: usize) -> Vec<Unlock> {
        let is_abandoned = |row: &&Row| row.asked.entities.iter().any(Entity::is_of_step) && is_gone(row.asked.work.id);
        let of = |row: &Row| Unlock::Lock(row.asked.tenant.clone(), row.asked.saga, row.asked.name.clone());
        self.rows.values().filter(is_abandoned).take(limit).map(of).collect()
    }

    pub(in crate::memory) fn list(&self, filter: &LockFilter) -> Vec<StoredLock> {
        let is_listed = |(number, row): &(&u64, &Row)| {
            row.asked.tenant == filter.tenant
                && filter.saga.is_none_or(|saga| row.asked.saga == saga)
                && filter.entity.as_ref().is_none_or(|entity| row.is_queued() && row.asked.entities.contains(entity))
                && filter.after.is_none_or(|after| **number > after)
        };
        let rows = self.rows.iter().filter(is_listed).take(filter.limit);
        rows.map(|(number, row)| self.stored(*number, row)).collect()
    }

    fn stored(&self, number: u64, row: &Row) -> StoredLock {
        let tokens = row.tokens.iter().copied().map(Some).chain(std::iter::repeat(None));
        let entities = row.asked.entities.iter().filter(|_| row.is_queued()).cloned();
        StoredLock {
            entities: entities.zip(tokens).collect(),
            granted_at: row.granted_at,
            waits_for: self.blockers(number).into_iter().collect(),
            ..StoredLock::new(number, &row.asked, row.state.clone(), row.asked_at)
        }
    }

    fn insert(&mut self, name: (SagaId, String), request: LockRequest, now: Timestamp, woken: &mut Vec<WorkId>) -> u64 {
        let row =
            Row { asked: request, state: LockState::Waiting, tokens: Vec::new(), asked_at: now, granted_at: None };
        let number = self.add(name, row);
        if self.blockers(number).is_empty() {
            self.grant(number, now);
        } else {
            self.resolve_deadlocks(number, now, woken);
        }
        number
    }

    /// Adds a row under the next number.
    fn add(&mut self, name: (SagaId, String), row: Row) -> u64 {
        let number = self.next();
        for entity in row.entity_keys() {
            self.by_entity.entry(entity).or_default().insert(number);
        }
        self.by_name.insert(name, number);
        self.rows.insert(number, row);
        number
    }

    /// The saga asks once more, maybe by another work row.
    fn ask_again(&mut self, number: u64, request: &LockRequest, now: Timestamp, woken: &mut Vec<WorkId>) {
        let first_blocker = self.blockers(number).into_iter().next();
        let Some(row) = self.rows.get_mut(&number) else { return };
        row.asked.work = request.work;
        if row.state != LockState::Waiting || now < row.until() {
            return;
        }
        row.state = LockState::TimedOut(first_blocker.unwrap_or_else(|| request.owner.clone()));
        let entities = self.leave_queue(number);
        self.hand_over(&entities, now, woken);
    }

    /// Ends each ring of waits that the request of this number closed.
    fn resolve_deadlocks(&mut self, number: u64, now: Timestamp, woken: &mut Vec<WorkId>) {
        let asking = self.rows[&number].asked.owner.clone();
        let tenant = self.rows[&number].asked.tenant.clone();
        while let Some((youngest, other)) = youngest_in_ring(&self.waits(&tenant), &asking) {
            let is_its = |row: &Row| {
                (&row.asked.tenant, &row.asked.owner) == (&tenant, &youngest) && row.state == LockState::Waiting
            };
            let given_up: Vec<u64> =
                self.rows.iter().filter(|(_, row)| is_its(row)).map(|(number, _)| *number).collect();
            let mut entities = BTreeSet::new();
            for number in given_up {
                entities.extend(self.leave_queue(number));
                if let Some(row) = self.rows.get_mut(&number) {
                    row.state = LockState::Deadlock(other.clone());
                    woken.push(row.asked.work.id);
                }
            }
            self.hand_over(&entities, now, woken);
        }
    }

    /// Grants the requests on these entities that are not blocked.
    fn hand_over(&mut self, entities: &BTreeSet<(Tenant, Entity)>, now: Timestamp, woken: &mut Vec<WorkId>) {
        let queued: BTreeSet<u64> = entities.iter().flat_map(|entity| self.on(entity)).collect();
        loop {
            let is_free =
                |number: &u64| self.rows[number].state == LockState::Waiting && self.blockers(*number).is_empty();
            let Some(number) = queued.iter().copied().find(is_free) else { return };
            self.grant(number, now);
            woken.push(self.rows[&number].asked.work.id);
        }
    }

    fn grant(&mut self, number: u64, now: Timestamp) {
        let Some(row) = self.rows.get(&number) else { return };
        let entities: Vec<(Tenant, Entity)> = row.entity_keys().collect();
        let owner = row.asked.owner.clone();
        let mut tokens = Vec::with_capacity(entities.len());
        for entity in &entities {
            let token = self.token_of(entity, &owner);
            tokens.push(token.unwrap_or_else(|| self.next()));
        }
        if let Some(row) = self.rows.get_mut(&number) {
            (row.state, row.tokens, row.granted_at) = (LockState::Granted, tokens, Some(now));
        }
    }

    /// The token that the owner has of the entity, if it has the entity.
    fn token_of(&self, entity: &(Tenant, Entity), owner: &Key) -> Option<u64> {
        self.on(entity).find_map(|number| {
            let row = self.rows.get(&number)?;
            let is_its = row.asked.owner == *owner && row.state == LockState::Granted;
            let place = row.asked.entities.iter().position(|named| *named == entity.1).filter(|_| is_its)?;
            row.tokens.get(place).copied()
        })
    }

    /// The owners that a request waits for; none if it does not wait.
    fn blockers(&self, number: u64) -> BTreeSet<Key> {
        self.in_front_of(number).into_keys().collect()
    }

    /// The same, with whether they have an entity of it, or only wait in front.
    fn in_front_of(&self, number: u64) -> BTreeMap<Key, bool> {
        let mut found = BTreeMap::new();
        let Some(row) = self.rows.get(&number).filter(|row| row.state == LockState::Waiting) else { return found };
        let owner = &row.asked.owner;
        let open = row.entity_keys().filter(|entity| self.token_of(entity, owner).is_none());
        for other in open.flat_map(|entity| self.on(&entity).collect::<Vec<_>>()) {
            let Some(before) = self.rows.get(&other).filter(|before| before.asked.owner != *owner) else { continue };
            let has = before.state == LockState::Granted;
            if has || other < number {
                *found.entry(before.asked.owner.clone()).or_default() |= has;
            }
        }
        found
    }

    fn waits(&self, tenant: &Tenant) -> Vec<WaitsFor> {
        let mut first = BTreeMap::new();
        for (number, row) in self.rows.iter().filter(|(_, row)| row.asked.tenant == *tenant) {
            first.entry(&row.asked.owner).or_insert(*number);
        }
        let rows = self.rows.iter().filter(|(_, row)| row.asked.tenant == *tenant);
        let waits = rows.flat_map(|(number, row)| {
            let (waits, first) = (&row.asked.owner, first[&row.asked.owner]);
            let before = self.in_front_of(*number).into_iter();
            before.map(move |(holder, has)| WaitsFor { waits: waits.clone(), first, holder, has })
        });
        waits.collect()
    }

    /// The locks and the waiting requests on an entity, by their numbers.
    fn on(&self, entity: &(Tenant, Entity)) -> impl Iterator<Item = u64> {
        self.by_entity.get(entity).into_iter().flatten().copied()
    }

    /// The request does not wait any more, or the lock ends. Returns the entities that others may get.
    fn leave_queue(&mut self, number: u64) -> BTreeSet<(Tenant, Entity)> {
        let entities: BTreeSet<_> = self.rows.get(&number).into_iter().flat_map(Row::entity_keys).collect();
        for entity in &entities {
            if let Some(queued) = self.by_entity.get_mut(entity) {
                queued.remove(&number);
                if queued.is_empty() {
                    self.by_entity.remove(entity);
                }
            }
        }
        entities
    }
}
