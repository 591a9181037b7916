use saga_reservations::{
    Action, Book, FencingToken, Operation, Reason, Refusal, Reservation, ReservationKey, Reserve, ResourceName, State,
};

use super::client::{Ask, Message};
use super::mistake::Mistake;
use super::world::{AGE_MAX, RESOURCES, World};

/// How long what has ended is kept, in ticks: as long as its request may be on its way.
const KEPT: i64 = AGE_MAX;

type Answer = Result<Reservation, Refusal>;

/// Reservations, and perhaps a mistake in how they are kept.
#[derive(Debug, Clone)]
pub struct Reserving {
    pub(super) mistake: Option<Mistake>,
}

impl Reserving {
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

    /// A message comes, and its answer arrives or is lost.
    pub(super) fn deliver(&self, world: &mut World, message: Message, is_answered: bool) {
        let before = world.book.clone();
        let answer = self.perform(&mut world.book, message, world.now);
        observe(world, &before, message, &answer);
        if is_answered {
            tell(world, message, &answer);
        }
    }

    /// A transaction that read the book without a lock writes what it has decided.
    pub(super) fn write(&self, world: &mut World, read: Book, message: Message) {
        let before = world.book.clone();
        world.book = read;
        let answer = self.perform(&mut world.book, message, world.now);
        observe(world, &before, message, &answer);
        tell(world, message, &answer);
    }

    /// As the stores in SQL do it: a request that lacks units is decided again after the holds that are over have ended.
    fn perform(&self, book: &mut Book, message: Message, now: i64) -> Answer {
        let key = World::key(message.client);
        let now = World::time(if self.has(Mistake::ServersClock) { now - 1 } else { now });
        let answer = self.decide(book, &key, message, now);
        let is_lacking = answer.as_ref().is_err_and(|refusal| refusal.reason() == Reason::Insufficient);
        if !is_lacking || self.has(Mistake::RefusesUnswept) {
            return answer;
        }
        book.expire_overdue(now, usize::MAX);
        self.decide(book, &key, message, now)
    }

    fn decide(
        &self,
        book: &mut Book,
        key: &ReservationKey,
        message: Message,
        now: saga_core::store::Timestamp,
    ) -> Answer {
        let mut action = message.ask.action(message.client);
        let known = book.reservation(key).cloned();
        match (self.mistake, &mut action, &known) {
            (
                Some(Mistake::TokenIgnored),
                Action::Confirm { token, .. }
                | Action::Extend { token, .. }
                | Action::GiveBack { token }
                | Action::Release { token: Some(token) },
                Some(known),
            ) => *token = known.token,
            (Some(Mistake::NoTombstone), Action::Release { token: None }, None) => {
                // The same answer, and nothing is kept.
                return Book::default().perform(&Operation::new(key.clone(), action), now);
            }
            (Some(Mistake::ReleaseAddsTwice), Action::Release { .. }, Some(known))
                if known.state == State::Released =>
            {
                for line in &known.lines {
                    let capacity = book.resource(&line.resource).map_or(0, |resource| resource.capacity + 1);
                    _ = book.set_capacity(&line.resource, capacity);
                }
            }
            (Some(Mistake::ExtendRevives), Action::Extend { .. }, Some(known)) if known.is_overdue(now) => {
                let before = saga_core::store::Timestamp(known.expires_at.0 - 1);
                return book.perform(&Operation::new(key.clone(), action), before);
            }
            (Some(Mistake::LinesOneByOne), Action::Reserve(request), None) if request.given_lines().len() > 1 => {
                return one_by_one(book, key, request, now);
            }
            _ => {}
        }
        book.perform(&Operation::new(key.clone(), action), now)
    }

    /// Writes down that holds are over.
    pub(super) fn sweep(&self, world: &mut World) {
        let now = World::time(world.now + i64::from(self.has(Mistake::SweepersClock)));
        let Some(read) = world.swept.take() else {
            world.book.expire_overdue(now, usize::MAX);
            return;
        };
        for key in read {
            let Some(known) = world.book.reservation(&key).cloned() else { continue };
            let action = if known.state == State::Confirmed {
                Action::GiveBack { token: known.token }
            } else {
                Action::Release { token: None }
            };
            _ = world.book.perform(&Operation::new(key, action), now);
        }
    }

    /// Whether a client may use its key again, which is free: no message is on its way that would be taken for a new one.
    pub(super) fn may_begin_again(world: &World, client: usize) -> bool {
        let is_free = world.book.reservation(&World::key(client)).is_none();
        let is_its_own = |message: &&Message| message.client == client && message.ask.token().is_none();
        world.clients[client].has_asked && is_free && !world.messages.iter().any(|message| is_its_own(&message))
    }

    /// The time before which something must have ended to be forgotten.
    pub(super) fn forgets_before(&self, world: &World) -> i64 {
        world.now - if self.has(Mistake::ForgetsEarly) { 0 } else { KEPT }
    }
}

/// The lines in transactions of their own.
fn one_by_one(book: &mut Book, key: &ReservationKey, request: &Reserve, now: saga_core::store::Timestamp) -> Answer {
    let mut last = None;
    for (resource, quantity) in request.given_lines() {
        let part_key = if last.is_none() { key.clone() } else { ReservationKey::new(format!("{key}-2"))? };
        let part = Reserve::of(resource.as_str(), *quantity).ttl(request.time_to_live());
        last = Some(book.perform(&Operation::new(part_key, Action::Reserve(part)), now)?);
    }
    last.ok_or_else(|| Refusal::new(Reason::Invalid, "there are no lines"))
}

/// Whether a hold or a confirmation keeps a unit from this client.
fn is_kept_from(world: &World, book: &Book, client: usize) -> bool {
    let other = book.reservation(&World::key(1 - client));
    other.is_some_and(|other| {
        other.state == State::Confirmed || (other.state == State::Held && !other.is_overdue(world.clock()))
    })
}

/// Compares what the operation did with what it may do.
fn observe(world: &mut World, before: &Book, message: Message, answer: &Answer) {
    let key = World::key(message.client);
    let (known, found) = (before.reservation(&key), world.book.reservation(&key));
    let has_changed = known != found;
    let is_overdue = known.is_some_and(|known| known.is_overdue(world.clock()));
    let is_late = is_overdue || known.is_some_and(|known| known.state == State::Expired);
    match answer {
        Err(refusal) => {
            // A refused request may have ended holds that are over.
            world.broken.refused_with_effect |= has_changed && !is_overdue;
            let is_lacking = refusal.reason() == Reason::Insufficient;
            world.broken.refused_unfairly |= is_lacking && !is_kept_from(world, before, message.client);
        }
        Ok(reservation) => {
            let is_own =
                |token| known.is_some_and(|known| [known.token, known.first_token].contains(&FencingToken(token)));
            world.broken.by_another_token |= has_changed && message.ask.token().is_some_and(|token| !is_own(token));
            let is_new = known.is_none_or(|known| known.token != reservation.token) && !reservation.lines.is_empty();
            let highest = RESOURCES.iter().filter_map(|name| last_token(before, reservation, name)).max();
            world.broken.token_again |= is_new && highest.is_some_and(|highest| reservation.token <= highest);
            let was_confirmed = known.is_some_and(|known| known.state == State::Confirmed);
            let is_confirmed = reservation.state == State::Confirmed && !was_confirmed;
            let is_asked_late = matches!(message.ask, Ask::ConfirmIfFree(_)) && is_new;
            world.broken.confirmed_late |= is_confirmed && is_late && !is_asked_late;
            world.reached.late |= is_confirmed && is_late && is_asked_late;
            world.reached.barred |= reservation.lines.is_empty();
            world.reached.returned |= reservation.state == State::Returned;
            let other = before.reservation(&World::key(1 - message.client));
            let is_over = other.is_some_and(|other| other.is_overdue(world.clock()));
            world.reached.taken_over |= is_over && message.ask == Ask::Reserve && known.is_none();
        }
    }
}

fn last_token(book: &Book, reservation: &Reservation, name: &str) -> Option<FencingToken> {
    let name = ResourceName::new(name).ok()?;
    let is_of_it = reservation.lines.iter().any(|line| line.resource == name);
    book.resource(&name).filter(|_| is_of_it).map(|resource| resource.last_token)
}

/// The client gets the answer.
fn tell(world: &mut World, message: Message, answer: &Answer) {
    let client = &mut world.clients[message.client];
    match answer {
        Ok(reservation) => match reservation.state {
            State::Held => {
                client.token = Some(reservation.token.0);
                client.held_until = Some(reservation.expires_at.0 / 1_000_000);
            }
            State::Confirmed => {
                client.token = Some(reservation.token.0);
                client.told_confirmed = true;
            }
            _ => client.told_ended = true,
        },
        Err(refusal) if matches!(refusal.reason(), Reason::Expired | Reason::Ended) => client.told_ended = true,
        Err(_) => {}
    }
}
