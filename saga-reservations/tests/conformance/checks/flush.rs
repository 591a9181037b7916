//! What is kept when Redis loses everything. Other places lose nothing, and must do the same.

use saga_reservations::{Action, Reason, Reserve, State};

use super::actions::{confirm, extend, give_back, release, seats};
use crate::place::Place;

/// `R-DURABLE`, `R-KEY`
pub(crate) async fn r23_what_was_confirmed_stays_through_a_flush(place: &Place) {
    place.capacity("seat", 2).await;
    let held = place.reserve("a", seats(2)).await.unwrap();
    let confirmed = place.act("a", confirm(held.token)).await.unwrap();
    let intent = place.reserve("intent", Reserve::unique("signup", "ada")).await.unwrap();
    place.act("intent", confirm(intent.token)).await.unwrap();
    for _ in 0..2 {
        place.lose_everything().await;
        assert_eq!(place.reserve("b", seats(1)).await.unwrap_err(), Reason::Insufficient);
        assert_eq!(place.reserve("other", Reserve::unique("signup", "ada")).await.unwrap_err(), Reason::Duplicate);
        assert_eq!(place.find("a").await.unwrap(), confirmed);
        assert_eq!(place.reserve("a", seats(2)).await.unwrap(), confirmed);
        assert_eq!(place.reserve("a", seats(1)).await.unwrap_err(), Reason::KeyReused);
        assert_eq!(place.act("a", confirm(held.token)).await.unwrap(), confirmed);
        assert_eq!(place.act("a", release(held.token)).await.unwrap_err(), Reason::WrongState);
        assert_eq!(place.taken("seat").await, (2, 0));
    }
    place.lose_everything().await;
    place.act("a", give_back(held.token)).await.unwrap();
    place.lose_everything().await;
    assert_eq!(place.reserve("a", seats(1)).await.unwrap_err(), Reason::KeyReused);
    assert_eq!(place.reserve("a", seats(2)).await.unwrap_err(), Reason::Ended);
    assert_eq!(place.taken("seat").await, (0, 0));
    assert!(place.reserve("c", seats(2)).await.unwrap().token > held.token);
}

/// `R-KEY`
pub(crate) async fn r24_a_release_bars_a_late_request_through_a_flush(place: &Place) {
    place.capacity("seat", 2).await;
    place.act("a", Action::Release { token: None }).await.unwrap();
    place.lose_everything().await;
    assert_eq!(place.reserve("a", seats(2)).await.unwrap_err(), Reason::Ended);
    assert_eq!(place.find("a").await.unwrap().state, State::Released);
    assert_eq!(place.taken("seat").await, (0, 0));
}

/// `R-TOKEN`, `R-CAPACITY`: a hold that was lost has expired.
pub(crate) async fn r25_a_hold_that_was_lost_is_over(place: &Place) {
    place.capacity("seat", 2).await;
    let first = place.reserve("a", seats(1)).await.unwrap();
    let second = place.reserve("b", seats(1)).await.unwrap();
    let third = place.reserve("intent", Reserve::unique("signup", "ada")).await.unwrap();
    if place.lose_everything().await {
        let new = place.reserve("c", seats(2)).await.unwrap();
        assert!(new.token > first.token.max(second.token));
        assert_eq!(place.act("a", extend(first.token, 60)).await.unwrap_err(), Reason::Expired);
        assert_eq!(place.act("a", confirm(first.token)).await.unwrap_err(), Reason::Expired);
        assert_eq!(place.act("b", release(second.token)).await.unwrap().state, State::Expired);
        assert!(place.reserve("other", Reserve::unique("signup", "ada")).await.unwrap().token > third.token);
        place.act("c", confirm(new.token)).await.unwrap();
    } else {
        place.act("a", confirm(first.token)).await.unwrap();
        place.act("b", confirm(second.token)).await.unwrap();
    }
    assert_eq!(place.reserve("d", seats(1)).await.unwrap_err(), Reason::Insufficient);
    assert_eq!(place.taken("seat").await, (2, 0));
}

/// `R-CAPACITY`, `R-FAIR`
pub(crate) async fn r26_a_capacity_is_that_of_now_through_a_flush(place: &Place) {
    place.capacity("seat", 5).await;
    let held = place.reserve("a", seats(1)).await.unwrap();
    place.act("a", confirm(held.token)).await.unwrap();
    place.capacity("seat", 2).await;
    place.lose_everything().await;
    assert_eq!(place.reserve("b", seats(2)).await.unwrap_err(), Reason::Insufficient);
    place.capacity("seat", 4).await;
    place.reserve("b", seats(3)).await.unwrap();
    assert_eq!(place.reserve("c", seats(1)).await.unwrap_err(), Reason::Insufficient);
    assert_eq!(place.taken("seat").await, (1, 3));
}
