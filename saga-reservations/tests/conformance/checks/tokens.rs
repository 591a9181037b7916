//! Tokens fence.

use saga_reservations::{Action, FencingToken, Reason};

use super::actions::{confirm, confirm_late, extend, give_back, release, seats};
use crate::place::Place;

/// `R-TOKEN`
pub(crate) async fn r10_another_token_changes_nothing(place: &Place) {
    place.capacity("seat", 5).await;
    let held = place.reserve("a", seats(2)).await.unwrap();
    let other = place.reserve("b", seats(1)).await.unwrap();
    let wrong = [FencingToken(0), other.token, FencingToken(u64::from(u32::MAX))];
    let actions: [fn(FencingToken) -> Action; 5] =
        [confirm, confirm_late, release, |token| extend(token, 600), give_back];
    for token in wrong {
        for action in actions {
            let refused = place.act("a", action(token)).await.unwrap_err();
            assert_eq!(refused, Reason::StaleToken, "{:?}", action(token));
        }
    }
    assert_eq!(place.find("a").await.unwrap(), held);
    place.act("a", confirm(held.token)).await.unwrap();
    for token in wrong {
        assert_eq!(place.act("a", give_back(token)).await.unwrap_err(), Reason::StaleToken);
    }
    assert_eq!(place.taken("seat").await, (2, 1));
}

/// `R-TOKEN`
pub(crate) async fn r12_tokens_grow(place: &Place) {
    place.capacity("seat", 100).await;
    place.capacity("bag", 100).await;
    let mut seen = FencingToken(0);
    for number in 0..9 {
        // Each one has a resource in common with the one before.
        let request = match number % 3 {
            0 => seats(1),
            1 => seats(1).and("bag", 1),
            _ => saga_reservations::Reserve::of("bag", 1).and("seat", 1),
        };
        let held = place.reserve(&format!("key-{number}"), request).await.unwrap();
        assert!(held.token > seen, "{held:?} after {seen}");
        seen = held.token;
        if number % 2 == 0 {
            place.act(held.key.as_str(), release(held.token)).await.unwrap();
        }
    }
}
