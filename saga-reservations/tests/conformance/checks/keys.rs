//! One key is one reservation.

use std::sync::Arc;

use saga_reservations::{Action, Operation, Reason, ReservationKey, Reserve, State};

use super::actions::{confirm, release, seats};
use crate::place::Place;

/// `R-KEY`
pub(crate) async fn r2_one_key_is_one_reservation(place: &Place) {
    place.capacity("seat", 5).await;
    place.capacity("bag", 5).await;
    let held = place.reserve("a", seats(2).and("bag", 1)).await.unwrap();
    // The order of the lines and the time make no other request.
    let again = place.reserve("a", Reserve::of("bag", 1).and("seat", 2).ttl_secs(5)).await.unwrap();
    assert_eq!(again, held);
    assert_eq!(place.taken("seat").await, (0, 2));
    assert_eq!(place.find("a").await.unwrap(), held);
    let confirmed = place.act("a", confirm(held.token)).await.unwrap();
    assert_eq!(place.reserve("a", seats(2).and("bag", 1)).await.unwrap(), confirmed);
    assert_eq!(place.taken("seat").await, (2, 0));
}

/// `R-KEY`
pub(crate) async fn r3_a_key_with_other_lines_is_refused(place: &Place) {
    place.capacity("seat", 5).await;
    place.capacity("bag", 5).await;
    place.reserve("a", seats(2)).await.unwrap();
    for other in [seats(1), Reserve::of("bag", 2), seats(2).and("bag", 1)] {
        assert_eq!(place.reserve("a", other.clone()).await.unwrap_err(), Reason::KeyReused, "{other:?}");
    }
    assert_eq!((place.taken("seat").await, place.taken("bag").await), ((0, 2), (0, 0)));
}

/// `R-KEY`
pub(crate) async fn r4_a_release_bars_a_late_request(place: &Place) {
    place.capacity("seat", 5).await;
    for _ in 0..2 {
        let barred = place.act("a", Action::Release { token: None }).await.unwrap();
        assert_eq!((barred.state, barred.lines.len()), (State::Released, 0));
    }
    assert_eq!(place.reserve("a", seats(2)).await.unwrap_err(), Reason::Ended);
    assert_eq!(place.taken("seat").await, (0, 0));
    assert_eq!(place.find("a").await.unwrap().state, State::Released);
    // A client with a token has seen a reservation, so there was one.
    let held = place.reserve("b", seats(2)).await.unwrap();
    assert_eq!(place.act("c", release(held.token)).await.unwrap_err(), Reason::NotFound);
    // A client that saw no answer releases what there is.
    assert_eq!(place.act("b", Action::Release { token: None }).await.unwrap().state, State::Released);
    assert_eq!(place.taken("seat").await, (0, 0));
}

/// `R-KEY`, `R-DURABLE`
pub(crate) async fn r5_a_confirmation_may_be_repeated(place: &Place) {
    place.capacity("seat", 5).await;
    let held = place.reserve("a", seats(2)).await.unwrap();
    let confirmed = place.act("a", confirm(held.token)).await.unwrap();
    assert_eq!(confirmed.token, held.token);
    place.advance(3_600);
    place.sweep().await;
    assert_eq!(place.act("a", confirm(held.token)).await.unwrap(), confirmed);
    assert_eq!(place.taken("seat").await, (2, 0));
    assert_eq!(place.act("b", confirm(held.token)).await.unwrap_err(), Reason::NotFound);
}

/// `R-CAPACITY`
pub(crate) async fn r16_a_unique_intent_is_held_once_and_confirmed_once(place: &Place) {
    let signup = || Reserve::unique("signup", "ada").ttl_secs(60);
    let first = place.reserve("session-1", signup()).await.unwrap();
    assert_eq!(place.reserve("session-1", signup()).await.unwrap(), first);
    assert_eq!(place.reserve("session-2", signup()).await.unwrap_err(), Reason::Conflict);
    place.act("session-1", release(first.token)).await.unwrap();
    let second = place.reserve("session-2", signup()).await.unwrap();
    assert!(second.is_unique && second.token > first.token);
    place.act("session-2", confirm(second.token)).await.unwrap();
    assert_eq!(place.reserve("session-3", signup()).await.unwrap_err(), Reason::Duplicate);
    place.reserve("session-3", Reserve::unique("signup", "ben")).await.unwrap();
    assert_eq!(place.taken("signup/ada").await, (1, 0));
}

/// `R-KEY`, `R-ONCE`: in whatever order they arrive, the units are free at the end.
pub(crate) async fn r22_a_release_and_its_request_may_come_at_once(place: &Place) {
    place.capacity("seat", 1_000).await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..128 {
        // Each key has one of each.
        let action = if number % 2 == 0 { Action::Reserve(seats(2)) } else { Action::Release { token: None } };
        let key = ReservationKey::new(format!("key-{}", number / 2)).unwrap();
        let reservations = Arc::clone(&place.reservations);
        calls.spawn(async move { reservations.perform(Operation::new(key, action)).await.map(drop) });
    }
    for answer in calls.join_all().await {
        if let Err(error) = answer {
            assert_eq!(error.refusal().unwrap_or_else(|| panic!("{error:?}")).reason(), Reason::Ended);
        }
    }
    for number in 0..64 {
        let key = format!("key-{number}");
        assert_eq!(place.find(&key).await.unwrap().state, State::Released, "{key}");
    }
    assert_eq!(place.taken("seat").await, (0, 0));
}
