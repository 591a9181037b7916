use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use saga_core::store::Timestamp;

use super::holding::{Movement, next_token};
use super::name::{ReservationKey, ResourceName};
use super::operation::{Action, Late, Operation};
use super::refusal::{Reason, Refusal};
use super::reservation::{FencingToken, Line, Reservation, State, plus};
use super::reserve::{Reserve, check_ttl};
use super::resource::{CAPACITY_MAX, Resource};

/// Resources and reservations, and the rules by which they change: a pure value, which reads no clock and no database.
///
/// The store in memory keeps one with everything. The stores in SQL load the rows that an operation is about under their
/// locks, let the book decide, and write what changed. So the rules are the same everywhere, and stand here only.
///
/// A refused operation changes nothing. Two books are equal if they have the same resources and reservations.
#[derive(Debug, Clone, Default)]
pub struct Book {
    resources: BTreeMap<ResourceName, Resource>,
    reservations: BTreeMap<ReservationKey, Reservation>,
    /// The holds in the order in which they expire.
    holds: BTreeSet<(Timestamp, ReservationKey)>,
    changes: Changes,
}

/// What an operation changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    pub(crate) resources: BTreeMap<ResourceName, Change>,
    pub(crate) reservations: BTreeMap<ReservationKey, Change>,
}

impl Changes {
    /// How many rows have changed.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn len(&self) -> usize {
        self.resources.len() + self.reservations.len()
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.reservations.is_empty()
    }
}

/// Whether a row is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Inserted,
    Updated,
}

impl Book {
    /// Carries an operation out at this time.
    ///
    /// # Errors
    /// When it is refused.
    pub fn perform(&mut self, operation: &Operation, now: Timestamp) -> Result<Reservation, Refusal> {
        let Operation { key, action } = operation;
        match action {
            Action::Reserve(request) => self.reserve(key, request, now),
            Action::Confirm { token, late } => self.confirm(key, *token, *late, now),
            Action::Release { token } => self.release(key, *token, now),
            Action::Extend { token, ttl } => self.extend(key, *token, *ttl, now),
            Action::GiveBack { token } => self.give_back(key, *token, now),
        }
    }

    /// Sets how many units there are of a resource, and makes the resource if there is none.
    ///
    /// # Errors
    /// When more is taken, or the resource is that of a unique intent.
    pub fn set_capacity(&mut self, name: &ResourceName, capacity: u64) -> Result<Resource, Refusal> {
        if capacity > CAPACITY_MAX {
            let message = format!("a capacity of {capacity} is refused: it is {CAPACITY_MAX} at most");
            return Err(Refusal::new(Reason::Invalid, message));
        }
        let changed = match self.resources.get(name) {
            None => Resource::new(name.clone(), capacity, false),
            Some(known) if known.is_unique => {
                let message = format!("{name} is a unique intent, of which there is one; its capacity stays 1");
                return Err(Refusal::new(Reason::Invalid, message));
            }
            Some(known) if capacity < known.taken() => return Err(Refusal::below_taken(known, capacity)),
            Some(known) => Resource { capacity, ..known.clone() },
        };
        self.put_resource(changed.clone());
        Ok(changed)
    }

    /// Ends the holds that are over, the oldest first, and returns how many there were. A hold stays whose resources a store
    /// has not loaded.
    pub fn expire_overdue(&mut self, now: Timestamp, limit: usize) -> usize {
        let is_overdue = |(expires_at, _): &&(Timestamp, ReservationKey)| *expires_at <= now;
        let overdue = self.holds.iter().take_while(is_overdue).map(|(_, key)| key);
        let overdue: Vec<_> = overdue.filter(|key| self.has_resources_of(key)).take(limit).cloned().collect();
        for key in &overdue {
            if let Some(hold) = self.reservations.get(key).cloned() {
                self.end(hold, Movement::HeldToFree, State::Expired, now);
            }
        }
        overdue.len()
    }

    /// Forgets reservations that were released, given back or expired before this time, and returns how many there were.
    pub fn prune(&mut self, before: Timestamp, limit: usize) -> usize {
        let is_past = |reservation: &&Reservation| {
            !matches!(reservation.state, State::Held | State::Confirmed) && reservation.changed_at < before
        };
        let past = self.reservations.values().filter(is_past).take(limit);
        let past: Vec<_> = past.map(|reservation| reservation.key.clone()).collect();
        for key in &past {
            self.reservations.remove(key);
        }
        past.len()
    }

    /// The reservation of a key.
    pub fn reservation(&self, key: &ReservationKey) -> Option<&Reservation> {
        self.reservations.get(key)
    }

    /// The resource of a name.
    pub fn resource(&self, name: &ResourceName) -> Option<&Resource> {
        self.resources.get(name)
    }

    /// Whether the resources are here of the reservation of a key, if there is one. Without them its units cannot move.
    pub(crate) fn has_resources_of(&self, key: &ReservationKey) -> bool {
        let mut lines = self.reservations.get(key).into_iter().flat_map(|reservation| &reservation.lines);
        lines.all(|line| self.resources.contains_key(&line.resource))
    }

    /// Adds a resource that a store has.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn load_resource(&mut self, resource: Resource) {
        self.resources.insert(resource.name.clone(), resource);
    }

    /// Adds a reservation that a store has.
    pub(crate) fn load_reservation(&mut self, reservation: Reservation) {
        if reservation.state == State::Held {
            self.holds.insert((reservation.expires_at, reservation.key.clone()));
        }
        self.reservations.insert(reservation.key.clone(), reservation);
    }

    /// What has changed since this was called last.
    pub(crate) fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    fn reserve(&mut self, key: &ReservationKey, request: &Reserve, now: Timestamp) -> Result<Reservation, Refusal> {
        let lines = request.check()?;
        if let Some(known) = self.reservations.get(key) {
            return same_again(known, &lines, request.is_unique(), now);
        }
        self.see_resources(&lines, request.is_unique())?;
        self.see_free(&lines)?;
        let token = self.draw_token(&lines);
        let times = (now, request.time_to_live());
        let reservation = Reservation::held(key.clone(), (lines, request.is_unique()), token, times);
        self.book(Movement::FreeToHeld, &reservation);
        Ok(self.put_reservation(reservation))
    }

    fn confirm(
        &mut self,
        key: &ReservationKey,
        token: FencingToken,
        late: Late,
        now: Timestamp,
    ) -> Result<Reservation, Refusal> {
        let mut reservation = self.known(key)?;
        // The answer of a late confirmation may have been lost with its new token.
        let is_repeated = reservation.state == State::Confirmed && late == Late::IfFree && reservation.knows(token);
        if is_repeated {
            return Ok(reservation);
        }
        if token != reservation.token {
            return Err(Refusal::stale(&reservation, token));
        }
        let seen = reservation.clone().seen_at(now);
        match (seen.state, late) {
            (State::Confirmed, _) => return Ok(reservation),
            (State::Held, _) => self.book(Movement::HeldToConfirmed, &reservation),
            (State::Expired, Late::IfFree) => {
                // The units of a hold that was not swept are still kept for it.
                let is_kept = reservation.state == State::Held;
                let movement = if is_kept { Movement::HeldToConfirmed } else { Movement::FreeToConfirmed };
                if movement.takes() {
                    self.see_free(&reservation.lines)?;
                }
                self.book(movement, &reservation);
                reservation.token = self.draw_token(&reservation.lines);
            }
            _ => return Err(Refusal::ended(&seen)),
        }
        reservation.state = State::Confirmed;
        reservation.changed_at = now;
        Ok(self.put_reservation(reservation))
    }

    /// Confirms a hold that is kept elsewhere, in Redis. The first confirmation writes it down. If there is a reservation of its
    /// key, that one counts.
    #[cfg(feature = "redis")]
    pub(crate) fn confirm_hold(&mut self, hold: &Reservation, now: Timestamp) -> Result<Reservation, Refusal> {
        if let Some(known) = self.reservations.get(&hold.key) {
            return match known.state {
                State::Confirmed if known.token == hold.token => Ok(known.clone()),
                State::Confirmed | State::Held => Err(Refusal::stale(known, hold.token)),
                _ => Err(Refusal::ended(known)),
            };
        }
        self.see_resources(&hold.lines, hold.is_unique)?;
        self.see_free(&hold.lines)?;
        self.book(Movement::FreeToConfirmed, hold);
        self.change(&hold.lines, |resource, _| resource.last_token = resource.last_token.max(hold.token));
        Ok(self.put_reservation(Reservation { state: State::Confirmed, changed_at: now, ..hold.clone() }))
    }

    fn release(
        &mut self,
        key: &ReservationKey,
        token: Option<FencingToken>,
        now: Timestamp,
    ) -> Result<Reservation, Refusal> {
        let Some(reservation) = self.reservations.get(key).cloned() else {
            return match token {
                None => Ok(self.put_reservation(Reservation::tombstone(key.clone(), now))),
                Some(_) => Err(Refusal::unknown_key(key)),
            };
        };
        if let Some(token) = token.filter(|token| !reservation.knows(*token)) {
            return Err(Refusal::stale(&reservation, token));
        }
        match reservation.clone().seen_at(now).state {
            State::Confirmed => Err(Refusal::wrong_state(&reservation, State::Held)),
            State::Held => Ok(self.end(reservation, Movement::HeldToFree, State::Released, now)),
            State::Expired if reservation.state == State::Held => {
                Ok(self.end(reservation, Movement::HeldToFree, State::Expired, now))
            }
            _ => Ok(reservation),
        }
    }

    fn extend(
        &mut self,
        key: &ReservationKey,
        token: FencingToken,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Reservation, Refusal> {
        check_ttl(ttl)?;
        let mut reservation = self.known(key)?;
        if token != reservation.token {
            return Err(Refusal::stale(&reservation, token));
        }
        let seen = reservation.clone().seen_at(now);
        match seen.state {
            State::Held => {
                reservation.expires_at = reservation.expires_at.max(plus(now, ttl));
                Ok(self.put_reservation(reservation))
            }
            State::Confirmed => Err(Refusal::wrong_state(&seen, State::Held)),
            _ => Err(Refusal::ended(&seen)),
        }
    }

    fn give_back(&mut self, key: &ReservationKey, token: FencingToken, now: Timestamp) -> Result<Reservation, Refusal> {
        let reservation = self.known(key)?;
        if token != reservation.token {
            return Err(Refusal::stale(&reservation, token));
        }
        let seen = reservation.clone().seen_at(now);
        match seen.state {
            State::Confirmed => Ok(self.end(reservation, Movement::ConfirmedToFree, State::Returned, now)),
            State::Returned => Ok(reservation),
            State::Held => Err(Refusal::wrong_state(&seen, State::Confirmed)),
            _ => Err(Refusal::ended(&seen)),
        }
    }

    fn known(&self, key: &ReservationKey) -> Result<Reservation, Refusal> {
        self.reservations.get(key).cloned().ok_or_else(|| Refusal::unknown_key(key))
    }

    /// The resources are there, and of the right kind. Those of a unique intent are made.
    fn see_resources(&mut self, lines: &[Line], is_unique: bool) -> Result<(), Refusal> {
        for Line { resource: name, .. } in lines {
            match self.resources.get(name) {
                Some(known) if is_unique && !known.is_unique => return Err(Refusal::not_unique(name)),
                None if !is_unique => return Err(Refusal::unknown_resource(name)),
                _ => {}
            }
        }
        for Line { resource: name, .. } in lines {
            if !self.resources.contains_key(name) {
                self.put_resource(Resource::new(name.clone(), 1, true));
            }
        }
        Ok(())
    }

    /// There are enough units of each line.
    fn see_free(&self, lines: &[Line]) -> Result<(), Refusal> {
        for line in lines {
            let resource =
                self.resources.get(&line.resource).ok_or_else(|| Refusal::unknown_resource(&line.resource))?;
            if resource.free() < u64::from(line.quantity) {
                return Err(Refusal::short_of(resource, line.quantity));
            }
        }
        Ok(())
    }

    /// A token above all that these resources have given out, which they note.
    fn draw_token(&mut self, lines: &[Line]) -> FencingToken {
        let token = next_token(lines.iter().filter_map(|line| self.resources.get(&line.resource)));
        self.change(lines, |resource, _| resource.last_token = token);
        token
    }

    fn book(&mut self, movement: Movement, reservation: &Reservation) {
        self.change(&reservation.lines, |resource, line| movement.book(resource, line));
    }

    fn change(&mut self, lines: &[Line], change: impl Fn(&mut Resource, &Line)) {
        for line in lines {
            if let Some(mut resource) = self.resources.get(&line.resource).cloned() {
                change(&mut resource, line);
                self.put_resource(resource);
            }
        }
    }

    fn end(&mut self, mut reservation: Reservation, movement: Movement, state: State, now: Timestamp) -> Reservation {
        self.book(movement, &reservation);
        reservation.state = state;
        reservation.changed_at = now;
        self.put_reservation(reservation)
    }

    fn put_resource(&mut self, resource: Resource) {
        let name = resource.name.clone();
        let change = if self.resources.contains_key(&name) { Change::Updated } else { Change::Inserted };
        self.changes.resources.entry(name.clone()).or_insert(change);
        self.resources.insert(name, resource);
    }

    fn put_reservation(&mut self, reservation: Reservation) -> Reservation {
        let key = reservation.key.clone();
        let known = self.reservations.get(&key).map(|known| known.expires_at);
        if let Some(expires_at) = known {
            self.holds.remove(&(expires_at, key.clone()));
        }
        let change = if known.is_some() { Change::Updated } else { Change::Inserted };
        self.changes.reservations.entry(key).or_insert(change);
        self.load_reservation(reservation.clone());
        reservation
    }
}

/// What changed since the rows were written last does not count.
impl PartialEq for Book {
    fn eq(&self, other: &Self) -> bool {
        (&self.resources, &self.reservations) == (&other.resources, &other.reservations)
    }
}

impl Eq for Book {}

impl Hash for Book {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.resources, &self.reservations).hash(state);
    }
}

/// What a repeated request gets: the reservation, if it still is one.
fn same_again(known: &Reservation, lines: &[Line], is_unique: bool, now: Timestamp) -> Result<Reservation, Refusal> {
    let is_tombstone = known.lines.is_empty();
    if !is_tombstone && (known.lines != lines || known.is_unique != is_unique) {
        return Err(Refusal::key_reused(&known.key));
    }
    let seen = known.clone().seen_at(now);
    match seen.state {
        State::Held | State::Confirmed => Ok(seen),
        _ => Err(Refusal::ended(&seen)),
    }
}
