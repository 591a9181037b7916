//! Random operations of clients that share few resources: the accounts of the book are those of its reservations.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use saga_core::store::Timestamp;
use saga_reservations::{
    Action, Book, FencingToken, Late, Operation, Reason, Reservation, ReservationKey, Reserve, ResourceName, State,
};

const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const RESOURCES: [(&str, u64); 3] = [("bag", 1), ("meal", 2), ("seat", 3)];

#[derive(Debug, Clone)]
enum Event {
    Perform(usize, Action),
    /// The key's reservation, with the token that its client was told first.
    WithToken(usize, fn(FencingToken) -> Action),
    SetCapacity(usize, u64),
    Advance(u64),
    Sweep,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let key = 0..KEYS.len();
    let request = (proptest::sample::subsequence(&RESOURCES[..], 1..=3), 1_u32..3, 1_u64..40);
    let reserve = (key.clone(), request).prop_map(|(key, (resources, quantity, ttl))| {
        let lines = resources.into_iter().map(|(name, _)| (name.to_owned(), quantity));
        Event::Perform(key, Action::Reserve(Reserve::of_lines(lines).ttl_secs(ttl)))
    });
    let actions: Vec<fn(FencingToken) -> Action> = vec![
        |token| Action::Confirm { token, late: Late::Refuse },
        |token| Action::Confirm { token, late: Late::IfFree },
        |token| Action::Release { token: Some(token) },
        |_| Action::Release { token: None },
        |token| Action::Extend { token, ttl: Duration::from_secs(20) },
        |token| Action::GiveBack { token },
    ];
    let event = prop_oneof![
        4 => reserve,
        6 => (key, proptest::sample::select(actions)).prop_map(|(key, action)| Event::WithToken(key, action)),
        1 => (0..RESOURCES.len(), 0_u64..4).prop_map(|(resource, capacity)| Event::SetCapacity(resource, capacity)),
        2 => (1_u64..30).prop_map(Event::Advance),
        1 => Just(Event::Sweep),
    ];
    proptest::collection::vec(event, 1..80)
}

fn key(number: usize) -> ReservationKey {
    ReservationKey::new(KEYS[number]).unwrap()
}

fn name(number: usize) -> ResourceName {
    ResourceName::new(RESOURCES[number].0).unwrap()
}

/// What clients were told, and the laws that it must obey.
#[derive(Default)]
struct Told {
    tokens: BTreeMap<ReservationKey, FencingToken>,
    highest: BTreeMap<ResourceName, FencingToken>,
    confirmed: BTreeMap<ReservationKey, Reservation>,
}

impl Told {
    fn note(
        &mut self,
        operation: &Operation,
        answer: &Result<Reservation, saga_reservations::Refusal>,
        now: Timestamp,
    ) {
        let Ok(reservation) = answer else { return };
        let is_new = self.tokens.get(&operation.key).is_none_or(|known| reservation.token > *known);
        if is_new && !reservation.lines.is_empty() {
            for line in &reservation.lines {
                let highest = self.highest.entry(line.resource.clone()).or_insert(FencingToken(0));
                assert!(reservation.token > *highest, "{reservation:?} after {highest}");
                *highest = reservation.token;
            }
            self.tokens.insert(operation.key.clone(), reservation.token);
        }
        match (&operation.action, reservation.state) {
            (Action::Confirm { late, .. }, state) => {
                assert_eq!(state, State::Confirmed);
                let was_confirmed = self.confirmed.contains_key(&operation.key);
                assert!(
                    was_confirmed || *late == Late::IfFree || now < reservation.expires_at,
                    "{reservation:?} was confirmed late, at {now}"
                );
                self.confirmed.insert(operation.key.clone(), reservation.clone());
            }
            (Action::GiveBack { .. }, _) => _ = self.confirmed.remove(&operation.key),
            _ => {}
        }
    }

    fn check(&self, book: &Book) {
        let reservations: Vec<&Reservation> =
            (0..KEYS.len()).filter_map(|number| book.reservation(&key(number))).collect();
        for number in 0..RESOURCES.len() {
            let Some(resource) = book.resource(&name(number)) else { continue };
            let sum = |state| -> u64 {
                let of_state = reservations.iter().filter(|reservation| reservation.state == state);
                let lines = of_state.flat_map(|reservation| &reservation.lines);
                lines.filter(|line| line.resource == resource.name).map(|line| u64::from(line.quantity)).sum()
            };
            assert_eq!((resource.held, resource.confirmed), (sum(State::Held), sum(State::Confirmed)), "{resource:?}");
            assert!(resource.taken() <= resource.capacity, "{resource:?}");
        }
        for (key, told) in &self.confirmed {
            assert_eq!(book.reservation(key).map(|found| found.state), Some(State::Confirmed), "{told:?}");
        }
    }
}

proptest! {
    #[test]
    fn the_accounts_are_those_of_the_reservations(events in events()) {
        let (mut book, mut told, mut now) = (Book::default(), Told::default(), Timestamp(1));
        for (number, (_, capacity)) in RESOURCES.iter().enumerate() {
            book.set_capacity(&name(number), *capacity).unwrap();
        }
        for event in events {
            let operation = match event {
                Event::Perform(number, action) => Operation::new(key(number), action),
                Event::WithToken(number, action) => {
                    let token = book.reservation(&key(number)).map_or(FencingToken(7), |found| found.first_token);
                    Operation::new(key(number), action(token))
                }
                Event::SetCapacity(number, capacity) => {
                    _ = book.set_capacity(&name(number), capacity);
                    told.check(&book);
                    continue;
                }
                Event::Advance(seconds) => {
                    now.0 += i64::try_from(seconds).unwrap() * 1_000_000;
                    continue;
                }
                Event::Sweep => {
                    book.expire_overdue(now, usize::MAX);
                    told.check(&book);
                    continue;
                }
            };
            let answer = book.perform(&operation, now);
            told.note(&operation, &answer, now);
            told.check(&book);
            // A repeated operation has the same answer and no effect, or is refused for what it did itself.
            let before = book.reservation(&operation.key).cloned();
            match (book.perform(&operation, now), answer) {
                (Ok(again), Ok(first)) => prop_assert_eq!(again, first),
                (Err(again), Ok(first)) => {
                    let lost_token = again.reason() == Reason::StaleToken && first.token != first.first_token;
                    prop_assert!(lost_token, "{:?} after {:?}", again, first);
                }
                (Ok(again), Err(first)) => prop_assert!(false, "{:?} after {:?}", again, first),
                (Err(again), Err(first)) => prop_assert_eq!(again, first),
            }
            prop_assert_eq!(before.as_ref(), book.reservation(&operation.key));
        }
    }
}
