//! The checks. Each is named after its clause.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use saga_core::{Entity, Tenant};
use saga_redis::{LockError, LockServiceExt as _};

use crate::place::{LONG, Place, SHORT, account, request, request_for, token};

pub(crate) async fn l1_one_holder_has_an_entity(place: &Place) {
    let first = place.granted(&request("a")).await;
    place.waits(&request("b")).await;
    place.waits(&request("c")).await;
    place.locks.renew(&first).await.unwrap();
    place.waits(&request("b")).await;
    place.locks.release(&first).await.unwrap();
    place.granted(&request("b")).await;
    place.waits(&request("c")).await;
}

pub(crate) async fn l1_holders_at_once_take_turns(place: &Place) {
    const HOLDERS: usize = 8;
    const ROUNDS: usize = 5;
    let is_inside = Arc::new(AtomicBool::new(false));
    let holders = (0..HOLDERS).map(|holder| {
        let (locks, is_inside) = (place.locks.clone(), is_inside.clone());
        tokio::spawn(async move {
            let mut tokens = Vec::new();
            for round in 0..ROUNDS {
                let lock = locks.acquire_within(&request(&format!("{holder}/{round}")), LONG).await.unwrap();
                assert!(!is_inside.swap(true, Ordering::SeqCst), "two holders have the entity");
                tokio::task::yield_now().await;
                tokens.push(token(&lock));
                is_inside.store(false, Ordering::SeqCst);
                locks.release(&lock).await.unwrap();
            }
            tokens
        })
    });
    let mut tokens = Vec::new();
    for holder in holders.collect::<Vec<_>>() {
        tokens.extend(holder.await.unwrap());
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), HOLDERS * ROUNDS, "each grant has its own token");
}

pub(crate) async fn l1_tenants_never_meet(place: &Place) {
    place.granted(&request("a")).await;
    let elsewhere = request("a").tenant(Tenant::new("elsewhere").unwrap());
    let lock = place.granted(&elsewhere).await;
    place.waits(&request("b")).await;
    place.locks.release(&lock).await.unwrap();
    place.waits(&request("b")).await;
}

pub(crate) async fn l2_tokens_grow(place: &Place) {
    let mut highest = 0;
    for round in 0..5 {
        // A release, a withdrawal and the end of a lease.
        let lock = place.granted(&request(&format!("a{round}"))).await;
        assert!(token(&lock) > highest, "{lock:?}");
        place.locks.release(&lock).await.unwrap();
        let second = place.granted(&request(&format!("b{round}"))).await;
        assert!(token(&second) > token(&lock));
        place.locks.withdraw(second.request()).await.unwrap();
        let third = place.granted_in_the_end(&request(&format!("c{round}")).lease_ttl(SHORT)).await;
        assert!(token(&third) > token(&second));
        let fourth = place.granted_in_the_end(&request(&format!("d{round}"))).await;
        assert!(token(&fourth) > token(&third));
        highest = token(&fourth);
        place.locks.release(&fourth).await.unwrap();
    }
}

pub(crate) async fn l2_tokens_grow_after_all_was_lost(place: &Place) {
    let mut highest = 0;
    for round in 0..3 {
        let first = place.granted(&request(&format!("a{round}"))).await;
        assert!(token(&first) > highest, "{first:?}");
        place.lose_everything().await;
        let second = place.granted(&request(&format!("b{round}"))).await;
        assert!(token(&second) > token(&first), "{second:?}");
        let lost = place.locks.renew(&first).await.unwrap_err();
        assert!(matches!(lost, LockError::Lost { .. }), "{lost:?}");
        highest = token(&second);
        place.locks.release(&second).await.unwrap();
    }
}

pub(crate) async fn l3_a_holder_that_asks_again_gets_the_same_token(place: &Place) {
    let first = place.granted(&request("a")).await;
    assert!(place.waits(&request("b")).await.unwrap() <= LONG);
    let again = place.granted(&request("a").lease_ttl(LONG * 2)).await;
    assert_eq!(token(&again), token(&first));
    assert!(place.waits(&request("b")).await.unwrap() > LONG, "the lease began anew");
    place.locks.release(&first).await.unwrap();
    let second = place.granted(&request("b")).await;
    assert_eq!(token(&place.granted(&request("b")).await), token(&second));
}

pub(crate) async fn l4_turns_are_in_the_order_of_asking(place: &Place) {
    let mut lock = place.granted(&request("a")).await;
    let waiting = ["d", "b", "e", "c"];
    for holder in waiting {
        place.waits(&request(holder)).await;
    }
    for (nth, next) in waiting.iter().enumerate() {
        place.locks.release(&lock).await.unwrap();
        // A newcomer and all others ask first.
        place.waits(&request("z")).await;
        for other in waiting[nth + 1..].iter().rev() {
            place.waits(&request(other)).await;
        }
        lock = place.granted(&request(next)).await;
    }
}

pub(crate) async fn l5_a_silent_waiter_is_passed_over(place: &Place) {
    let lock = place.granted(&request("a")).await;
    place.waits(&request("silent").wait_ttl(SHORT)).await;
    place.waits(&request("b")).await;
    place.waits(&request("c")).await;
    place.locks.release(&lock).await.unwrap();
    let second = place.granted_in_the_end(&request("b")).await;
    // It stands behind those that kept asking now.
    place.waits(&request("silent")).await;
    place.locks.release(&second).await.unwrap();
    place.waits(&request("silent")).await;
    place.granted(&request("c")).await;
}

pub(crate) async fn l6_a_renewal_lets_the_lease_begin_anew(place: &Place) {
    let lock = place.granted(&request("a").lease_ttl(LONG * 2)).await;
    place.granted(&request("a").lease_ttl(LONG)).await;
    assert!(place.waits(&request("b")).await.unwrap() <= LONG);
    place.locks.renew(&lock).await.unwrap();
    assert!(place.waits(&request("b")).await.unwrap() > LONG);
}

pub(crate) async fn l6_a_lock_that_was_lost_cannot_be_renewed(place: &Place) {
    let first = place.granted(&request("a").lease_ttl(SHORT)).await;
    let second = place.granted_in_the_end(&request("b").lease_ttl(LONG)).await;
    let lost = place.locks.renew(&first).await.unwrap_err();
    assert!(matches!(&lost, LockError::Lost { entity, holder } if *entity == account() && holder == "a"), "{lost:?}");
    assert!(place.waits(&request("c")).await.unwrap() > SHORT, "the other lease is as it was");
    place.locks.renew(&second).await.unwrap();
}

pub(crate) async fn l7_a_release_ends_only_the_own_lock(place: &Place) {
    let first = place.granted(&request("a").lease_ttl(SHORT)).await;
    let second = place.granted_in_the_end(&request("b")).await;
    place.locks.release(&first).await.unwrap();
    place.waits(&request("c")).await;
    place.locks.renew(&second).await.unwrap();
    place.locks.release(&second).await.unwrap();
    place.locks.release(&second).await.unwrap();
    place.granted(&request("c")).await;
}

pub(crate) async fn l7_a_withdrawal_ends_only_the_own_request(place: &Place) {
    let lock = place.granted(&request("a")).await;
    for holder in ["b", "c"] {
        place.waits(&request(holder)).await;
    }
    place.locks.withdraw(&request("stranger")).await.unwrap();
    place.locks.withdraw(&request("b")).await.unwrap();
    place.locks.renew(&lock).await.unwrap();
    place.waits(&request("d")).await;
    place.locks.withdraw(lock.request()).await.unwrap();
    place.waits(&request("d")).await;
    place.granted(&request("c")).await;
}

fn two() -> [Entity; 2] {
    [account(), Entity::new("order", 1)]
}

pub(crate) async fn l8_all_entities_or_the_holder_waits(place: &Place) {
    let [account, order] = two();
    for (nth, taken) in two().into_iter().enumerate() {
        let name = |holder: &str| format!("{holder}{nth}");
        let first = place.granted(&request_for([taken.clone()], &name("a"))).await;
        let both = request_for(two(), &name("b"));
        place.waits(&both).await;
        place.waits(&both).await;
        place.locks.release(&first).await.unwrap();
        let second = place.granted(&both).await;
        assert!(second.token_of(&account).is_some() && second.token_of(&order).is_some());
        for entity in two() {
            let other = request_for([entity], &name("c"));
            place.waits(&other).await;
            place.locks.withdraw(&other).await.unwrap();
        }
        place.locks.renew(&second).await.unwrap();
        place.locks.release(&second).await.unwrap();
    }
    // A request that is withdrawn while it waits gives up what it had.
    let first = place.granted(&request_for([order.clone()], "d")).await;
    let both = request_for(two(), "e");
    place.waits(&both).await;
    place.locks.withdraw(&both).await.unwrap();
    place.locks.release(&first).await.unwrap();
    place.granted(&request_for([order], "f")).await;
    place.granted(&request_for([account], "g")).await;
}

pub(crate) async fn l8_crossing_requests_end(place: &Place) {
    let ask = |nth: usize| {
        let locks = place.locks.clone();
        tokio::spawn(async move {
            let mut entities: Vec<Entity> = (0..6).map(|id| Entity::new("order", id)).collect();
            entities.rotate_left(nth);
            entities.truncate(4);
            for round in 0..4 {
                let request = request_for(entities.clone(), &format!("{nth}/{round}"));
                let lock = locks.acquire_within(&request, LONG).await.unwrap();
                locks.release(&lock).await.unwrap();
            }
        })
    };
    for asked in (0..6).map(ask).collect::<Vec<_>>() {
        asked.await.unwrap();
    }
}
