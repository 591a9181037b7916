//! How long holds last.

use std::time::Duration;

use saga_reservations::{Action, Reason, Reserve, State};

use super::actions::{confirm, confirm_late, extend, release, seats};
use crate::place::Place;

/// `R-EXPIRY`: nothing has swept.
pub(crate) async fn r7_a_late_confirmation_is_refused(place: &Place) {
    place.capacity("seat", 5).await;
    let held = place.reserve("a", seats(2)).await.unwrap();
    place.advance(30);
    assert_eq!(place.find("a").await.unwrap().state, State::Held);
    place.advance(60);
    assert_eq!(place.find("a").await.unwrap().state, State::Expired);
    assert_eq!(place.act("a", confirm(held.token)).await.unwrap_err(), Reason::Expired);
    assert_eq!(place.reserve("a", seats(2)).await.unwrap_err(), Reason::Expired);
    place.sweep().await;
    assert_eq!(place.act("a", confirm(held.token)).await.unwrap_err(), Reason::Expired);
    assert_eq!(place.taken("seat").await, (0, 0));
    assert_eq!(place.act("a", release(held.token)).await.unwrap().state, State::Expired);
    assert_eq!(place.taken("seat").await, (0, 0));
}

/// `R-EXPIRY`, `R-TOKEN`
pub(crate) async fn r8_a_late_confirmation_may_take_the_units_again(place: &Place) {
    place.capacity("seat", 5).await;
    for (key, is_swept) in [("a", false), ("b", true)] {
        let held = place.reserve(key, seats(2)).await.unwrap();
        place.advance(120);
        if is_swept {
            place.sweep().await;
        }
        let confirmed = place.act(key, confirm_late(held.token)).await.unwrap();
        assert_eq!((confirmed.state, confirmed.first_token), (State::Confirmed, held.token));
        assert!(confirmed.token > held.token);
        // The client did not get the answer, and so does not know the new token.
        assert_eq!(place.act(key, confirm_late(held.token)).await.unwrap(), confirmed);
        assert_eq!(place.act(key, confirm(held.token)).await.unwrap_err(), Reason::StaleToken);
        assert_eq!(place.act(key, Action::GiveBack { token: held.token }).await.unwrap_err(), Reason::StaleToken);
    }
    assert_eq!(place.taken("seat").await, (4, 0));
}

/// `R-CAPACITY`
pub(crate) async fn r9_a_late_confirmation_takes_nothing_from_others(place: &Place) {
    place.capacity("seat", 2).await;
    let late = place.reserve("late", seats(2)).await.unwrap();
    place.advance(120);
    let quick = place.reserve("quick", seats(1)).await.unwrap();
    assert!(quick.token > late.token);
    assert_eq!(place.act("late", confirm_late(late.token)).await.unwrap_err(), Reason::Insufficient);
    assert_eq!(place.taken("seat").await, (0, 1));
    place.act("quick", release(quick.token)).await.unwrap();
    place.act("late", confirm_late(late.token)).await.unwrap();
    assert_eq!(place.taken("seat").await, (2, 0));
    let released = place.reserve("never", seats(1)).await;
    assert_eq!(released.unwrap_err(), Reason::Insufficient);
}

/// `R-EXPIRY`
pub(crate) async fn r13_an_extension_only_makes_longer(place: &Place) {
    place.capacity("seat", 5).await;
    let held = place.reserve("a", seats(2)).await.unwrap();
    let longer = place.act("a", extend(held.token, 300)).await.unwrap();
    assert_eq!((longer.state, longer.token), (State::Held, held.token));
    assert!(longer.expires_at.0 >= held.expires_at.0 + 200_000_000, "{longer:?}");
    let shorter = place.act("a", extend(held.token, 1)).await.unwrap();
    assert_eq!(shorter.expires_at, longer.expires_at);
    assert_eq!(place.act("a", extend(held.token, 0)).await.unwrap_err(), Reason::Invalid);
    place.advance(200);
    assert_eq!(place.sweep().await, 0);
    place.act("a", confirm(held.token)).await.unwrap();
    assert_eq!(place.act("a", extend(held.token, 60)).await.unwrap_err(), Reason::WrongState);
}

/// `R-EXPIRY`
pub(crate) async fn r14_an_extension_revives_nothing(place: &Place) {
    place.capacity("seat", 5).await;
    let held = place.reserve("a", seats(2)).await.unwrap();
    place.advance(120);
    assert_eq!(place.act("a", extend(held.token, 60)).await.unwrap_err(), Reason::Expired);
    place.sweep().await;
    assert_eq!(place.act("a", extend(held.token, 60)).await.unwrap_err(), Reason::Expired);
    assert_eq!(place.act("a", confirm(held.token)).await.unwrap_err(), Reason::Expired);
    let held = place.reserve("b", seats(2)).await.unwrap();
    place.act("b", release(held.token)).await.unwrap();
    assert_eq!(place.act("b", extend(held.token, 60)).await.unwrap_err(), Reason::Ended);
    assert_eq!(place.taken("seat").await, (0, 0));
}

/// `R-FAIR`: nothing has swept.
pub(crate) async fn r17_units_of_expired_holds_are_free(place: &Place) {
    place.capacity("seat", 100).await;
    place.capacity("bag", 1).await;
    for number in 0..100 {
        place.reserve(&format!("old-{number}"), seats(1)).await.unwrap();
    }
    place.reserve("bag", Reserve::of("bag", 1).ttl_secs(600)).await.unwrap();
    place.reserve("intent", Reserve::unique("signup", "ada").ttl_secs(60)).await.unwrap();
    place.advance(120);
    place.reserve("new", seats(100)).await.unwrap();
    assert_eq!(place.taken("seat").await, (0, 100));
    place.reserve("again", Reserve::unique("signup", "ada")).await.unwrap();
    assert_eq!(place.reserve("other", Reserve::of("bag", 1)).await.unwrap_err(), Reason::Insufficient);
    place.advance(600);
    place.capacity("seat", 0).await;
    assert_eq!(place.taken("seat").await, (0, 0));
}

/// `R-ONCE`
pub(crate) async fn r18_a_sweep_ends_what_is_over_and_nothing_else(place: &Place) {
    place.capacity("seat", 10).await;
    let short = place.reserve("short", seats(1)).await.unwrap();
    let long = place.reserve("long", seats(2).ttl_secs(600)).await.unwrap();
    let confirmed = place.reserve("confirmed", seats(3)).await.unwrap();
    place.act("confirmed", confirm(confirmed.token)).await.unwrap();
    assert_eq!(place.sweep().await, 0);
    place.advance(120);
    assert_eq!(place.sweep().await, 1);
    assert_eq!(place.sweep().await, 0);
    assert_eq!(place.taken("seat").await, (3, 2));
    assert_eq!(place.act("short", release(short.token)).await.unwrap().state, State::Expired);
    assert_eq!(place.taken("seat").await, (3, 2));
    place.act("long", confirm(long.token)).await.unwrap();
    assert_eq!(place.find("confirmed").await.unwrap().state, State::Confirmed);
    assert_eq!(place.taken("seat").await, (5, 0));
}

pub(crate) async fn r21_what_ended_is_forgotten_and_the_rest_is_not(place: &Place) {
    place.capacity("seat", 10).await;
    for key in ["released", "confirmed", "expired"] {
        let held = place.reserve(key, seats(1)).await.unwrap();
        match key {
            "released" => place.act(key, release(held.token)).await.unwrap(),
            "confirmed" => place.act(key, confirm(held.token)).await.unwrap(),
            _ => held,
        };
    }
    place.advance(120);
    place.sweep().await;
    let held = place.reserve("held", seats(1).ttl(Duration::from_hours(100))).await.unwrap();
    let prune = async |keep| place.store.prune(Duration::from_secs(keep), 64).await.unwrap();
    assert_eq!(prune(3_600).await, 0);
    assert_eq!(place.reserve("released", seats(1)).await.unwrap_err(), Reason::Ended);
    place.advance(7_200);
    assert_eq!(prune(3_600).await, 2);
    assert_eq!(prune(3_600).await, 0);
    assert!(place.find("released").await.is_none() && place.find("expired").await.is_none());
    assert_eq!(place.find("confirmed").await.unwrap().state, State::Confirmed);
    assert_eq!(place.act("held", confirm(held.token)).await.unwrap().state, State::Confirmed);
    // Tokens grow although their reservations are forgotten.
    let again = place.reserve("released", seats(1)).await.unwrap();
    assert!(again.token > held.token);
}
