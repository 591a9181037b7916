//! How much there is.

use std::sync::Arc;

use saga_reservations::{Action, Operation, Reason, ReservationKey, Reserve, State};

use super::actions::{confirm, give_back, release, seats};
use crate::place::Place;

/// `R-CAPACITY`
pub(crate) async fn r1_no_more_is_taken_than_there_is(place: &Place) {
    place.capacity("seat", 5).await;
    let held = place.reserve("a", seats(3)).await.unwrap();
    assert_eq!((held.state, place.taken("seat").await), (State::Held, (0, 3)));
    assert_eq!(place.reserve("b", seats(3)).await.unwrap_err(), Reason::Insufficient);
    place.reserve("c", seats(2)).await.unwrap();
    assert_eq!(place.reserve("d", seats(1)).await.unwrap_err(), Reason::Insufficient);
    let confirmed = place.act("a", confirm(held.token)).await.unwrap();
    assert_eq!((confirmed.state, place.taken("seat").await), (State::Confirmed, (3, 2)));
    assert_eq!(place.reserve("e", seats(1)).await.unwrap_err(), Reason::Insufficient);
    // What was refused left nothing, so its key can be used when there are seats.
    place.capacity("seat", 6).await;
    place.reserve("e", seats(1)).await.unwrap();
    assert_eq!(place.taken("seat").await, (3, 3));
}

/// `R-ALL`
pub(crate) async fn r11_lines_are_taken_all_or_none(place: &Place) {
    place.capacity("seat", 5).await;
    place.capacity("bag", 1).await;
    let both = |bags| seats(2).and("bag", bags);
    assert_eq!(place.reserve("a", both(2)).await.unwrap_err(), Reason::Insufficient);
    assert_eq!((place.taken("seat").await, place.taken("bag").await), ((0, 0), (0, 0)));
    assert_eq!(place.reserve("a", seats(2).and("meal", 1)).await.unwrap_err(), Reason::NotFound);
    assert_eq!(place.taken("seat").await, (0, 0));
    let held = place.reserve("a", both(1)).await.unwrap();
    assert_eq!(held.lines.iter().map(|line| line.resource.as_str()).collect::<Vec<_>>(), ["bag", "seat"]);
    place.act("a", confirm(held.token)).await.unwrap();
    assert_eq!((place.taken("seat").await, place.taken("bag").await), ((2, 0), (1, 0)));
    place.act("a", give_back(held.token)).await.unwrap();
    assert_eq!((place.taken("seat").await, place.taken("bag").await), ((0, 0), (0, 0)));
}

/// `R-CAPACITY`
pub(crate) async fn r19_what_cannot_be_served_is_refused(place: &Place) {
    assert_eq!(place.reserve("a", seats(1)).await.unwrap_err(), Reason::NotFound);
    place.capacity("seat", 5).await;
    place.reserve("a", seats(3)).await.unwrap();
    let client = place.client();
    let refused = client.set_capacity("seat", 2).await.unwrap_err();
    assert_eq!(refused.refusal().unwrap().reason(), Reason::BelowTaken);
    client.set_capacity("seat", 3).await.unwrap();
    let refused = client.set_capacity("seat", u64::MAX).await.unwrap_err();
    assert_eq!(refused.refusal().unwrap().reason(), Reason::Invalid);

    for request in [Reserve::of_lines([]), seats(0), seats(1).and("seat", 1), seats(1).ttl_secs(0), seats(2).once()] {
        assert_eq!(place.reserve("b", request.clone()).await.unwrap_err(), Reason::Invalid, "{request:?}");
    }
    // A resource with a capacity is no unique intent, and the other way round.
    assert_eq!(place.reserve("b", seats(1).once()).await.unwrap_err(), Reason::Invalid);
    place.reserve("b", Reserve::unique("signup", "ada")).await.unwrap();
    let refused = client.set_capacity("signup/ada", 2).await.unwrap_err();
    assert_eq!(refused.refusal().unwrap().reason(), Reason::Invalid);
    assert_eq!(place.taken("seat").await, (0, 3));
    assert!(place.find("unknown").await.is_none());
    assert!(client.resource("unknown").await.unwrap().is_none());
}

/// `R-CAPACITY`, `R-KEY`: 32 clients want one of five seats, each by two requests at once.
pub(crate) async fn r20_requests_at_once_take_what_there_is(place: &Place) {
    place.capacity("seat", 5).await;
    place.capacity("bag", 64).await;
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..64 {
        let reservations = Arc::clone(&place.reservations);
        // Half of the requests name the resources the other way round.
        let both = if number % 4 < 2 { seats(1).and("bag", 1) } else { Reserve::of("bag", 1).and("seat", 1) };
        let key = ReservationKey::new(format!("client-{}", number / 2)).unwrap();
        requests.spawn(async move {
            let held = reservations.perform(Operation::new(key.clone(), Action::Reserve(both))).await;
            let token = match held {
                Ok(held) => held.token,
                Err(error) => {
                    assert_eq!(error.refusal().unwrap_or_else(|| panic!("{error:?}")).reason(), Reason::Insufficient);
                    return None;
                }
            };
            let confirmed = reservations.perform(Operation::new(key.clone(), confirm(token))).await.unwrap();
            assert_eq!(confirmed.state, State::Confirmed);
            Some((key, token))
        });
    }
    let served = requests.join_all().await;
    let served: std::collections::BTreeSet<_> = served.into_iter().flatten().collect();
    assert_eq!(served.len(), 5, "{served:?}");
    let tokens: std::collections::BTreeSet<_> = served.iter().map(|(_, token)| token).collect();
    assert_eq!(tokens.len(), 5, "{served:?}");
    assert_eq!((place.taken("seat").await, place.taken("bag").await), ((5, 0), (5, 0)));
}

/// `R-ONCE`
pub(crate) async fn r6_units_come_back_once(place: &Place) {
    place.capacity("seat", 5).await;
    let first = place.reserve("a", seats(2)).await.unwrap();
    place.reserve("b", seats(3)).await.unwrap();
    for _ in 0..3 {
        assert_eq!(place.act("a", release(first.token)).await.unwrap().state, State::Released);
        assert_eq!(place.act("a", Action::Release { token: None }).await.unwrap().state, State::Released);
        assert_eq!(place.taken("seat").await, (0, 3));
    }
    assert_eq!(place.reserve("c", seats(3)).await.unwrap_err(), Reason::Insufficient);
    assert_eq!(place.act("a", confirm(first.token)).await.unwrap_err(), Reason::Ended);
    place.reserve("d", seats(2)).await.unwrap();
}

/// `R-ONCE`
pub(crate) async fn r15_confirmed_units_are_given_back_once(place: &Place) {
    place.capacity("seat", 5).await;
    let held = place.reserve("a", seats(2)).await.unwrap();
    assert_eq!(place.act("a", give_back(held.token)).await.unwrap_err(), Reason::WrongState);
    place.act("a", confirm(held.token)).await.unwrap();
    assert_eq!(place.act("a", release(held.token)).await.unwrap_err(), Reason::WrongState);
    assert_eq!(place.act("a", Action::Release { token: None }).await.unwrap_err(), Reason::WrongState);
    assert_eq!(place.taken("seat").await, (2, 0));
    place.reserve("b", seats(3)).await.unwrap();
    for _ in 0..3 {
        assert_eq!(place.act("a", give_back(held.token)).await.unwrap().state, State::Returned);
        assert_eq!(place.taken("seat").await, (0, 3));
    }
    assert_eq!(place.reserve("c", seats(3)).await.unwrap_err(), Reason::Insufficient);
    assert_eq!(place.act("a", confirm(held.token)).await.unwrap_err(), Reason::Ended);
    assert_eq!(place.act("a", release(held.token)).await.unwrap().state, State::Returned);
    assert_eq!(place.reserve("a", seats(2)).await.unwrap_err(), Reason::Ended);
}
