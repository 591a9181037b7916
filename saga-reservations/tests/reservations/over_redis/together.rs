//! Requests that come at the same time share calls of Redis.

use std::sync::Arc;

use saga_reservations::{
    Action, Operation, Reason, RedisReservations, Reservation, ReservationKey, Reservations as _, ReservationsError,
    Reserve, State,
};
use saga_servers::{FaultProxy, RedisServer, Traffic};
use tokio::task::JoinSet;

use super::shop::{Shop, confirm, reason, reserve};

type Answer = Result<Reservation, ReservationsError>;

/// Asks for all before the first one is answered, and has the answers in the order of the requests.
async fn at_once<const N: usize>(server: &RedisReservations, requests: [(&str, Reserve); N]) -> [Answer; N] {
    let mut asking = JoinSet::new();
    for (number, (name, request)) in requests.into_iter().enumerate() {
        let (server, key) = (server.clone(), ReservationKey::new(name).unwrap());
        let operation = Operation::new(key, Action::Reserve(request));
        asking.spawn(async move { (number, server.perform(operation).await) });
    }
    let mut answers = asking.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect::<Vec<_>>().try_into().unwrap()
}

fn seats(quantity: u32) -> Reserve {
    Reserve::of("seat", quantity)
}

/// How many scripts Redis has run.
pub(crate) async fn scripts(redis: &RedisServer) -> u64 {
    let said = redis.command(&["INFO", "commandstats"]).await.unwrap();
    let line = said.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.and_then(|rest| rest.split(',').next()).map_or(0, |count| count.parse().unwrap())
}

/// `R-TOKEN`: two calls do not wait for each other, and the requests that come meanwhile are one call.
#[tokio::test]
async fn requests_at_once_share_a_call() {
    let shop = Shop::open(16).await;
    shop.sweep().await;
    reserve(&shop.one, "the resource is read").await.unwrap();
    let before = scripts(&shop.redis).await;
    let names: Vec<_> = (0..12).map(|number| format!("request {number}")).collect();
    let requests: [_; 12] = std::array::from_fn(|number| (names[number].as_str(), seats(1)));
    let held = at_once(&shop.one, requests).await.map(Result::unwrap);
    assert_eq!(scripts(&shop.redis).await - before, 3, "one for each of the first two, one for the others");
    assert!(held.array_windows().all(|[one, next]| one.token < next.token && next.state == State::Held));
    for (name, held) in names.iter().zip(&held) {
        assert_eq!(&reserve_again(&shop, name).await, held);
    }
    assert_eq!(shop.taken().await, (0, 13));
}

async fn reserve_again(shop: &Shop, name: &str) -> Reservation {
    let action = Action::Reserve(seats(1));
    shop.other.perform(Operation::new(ReservationKey::new(name).unwrap(), action)).await.unwrap()
}

/// `R-CAPACITY`, `R-KEY`, `R-ALL`: a request that is refused does not hinder the others of its call.
#[tokio::test]
async fn each_request_of_a_call_is_decided_by_itself() {
    let shop = Shop::open(4).await;
    let old = reserve(&shop.one, "old").await.unwrap();
    let old = confirm(&shop.one, "old", old.token).await.unwrap();
    shop.sweep().await;
    let answers = at_once(
        &shop.one,
        [
            ("first", seats(1)),
            ("too many", seats(3)),
            ("with a bag", Reserve::of("seat", 1).and("bag", 1)),
            ("twice", seats(1)),
            ("twice", seats(1)),
            ("twice", seats(2)),
            ("old", seats(1)),
            ("seat once", seats(1).once()),
            ("once", Reserve::unique("signup", "a")),
            ("once more", Reserve::unique("signup", "a")),
            ("last", seats(1)),
            ("late", seats(1)),
        ],
    );
    let [first, too_many, with_a_bag, twice, same, other_lines, known, seat_once, once, once_more, last, late] =
        answers.await;
    assert_eq!(first.unwrap().state, State::Held);
    assert_eq!(reason(too_many), Reason::Insufficient);
    assert_eq!(reason(with_a_bag), Reason::NotFound);
    assert_eq!(same.unwrap(), twice.unwrap());
    assert_eq!(reason(other_lines), Reason::KeyReused);
    assert_eq!(known.unwrap(), old);
    seat_once.unwrap_err();
    assert_eq!(once.unwrap().state, State::Held);
    assert_eq!(reason(once_more), Reason::Conflict);
    assert_eq!(last.unwrap().state, State::Held);
    assert_eq!(reason(late), Reason::Insufficient);
    assert_eq!(shop.taken().await, (1, 3));
}

/// `R-KEY`: an error of a call is that of each of its requests, and each is repeated by its key.
#[tokio::test]
async fn without_redis_all_requests_of_a_call_are_unavailable() {
    let redis = Arc::new(RedisServer::start().await.unwrap());
    let proxy = FaultProxy::start(&redis.url()).await.unwrap();
    let shop = Shop::at(proxy.url(), redis, 4).await;
    let requests = || [("one", seats(1)), ("two", seats(1)), ("three", seats(1))];
    proxy.set_traffic(Traffic::RefusesNew);
    proxy.cut_all();
    for answer in at_once(&shop.one, requests()).await {
        let error = answer.unwrap_err();
        assert!(matches!(error, ReservationsError::Unavailable { .. }), "{error:?}");
    }
    proxy.set_traffic(Traffic::Flows);
    let held = at_once(&shop.one, requests()).await.map(Result::unwrap);
    assert_eq!(at_once(&shop.other, requests()).await.map(Result::unwrap), held);
    assert_eq!(shop.taken().await, (0, 3));
}

/// `R-KEY`, `R-CAPACITY`: a call of more lines than Lua passes at once.
#[tokio::test]
async fn a_call_may_have_many_lines() {
    let shop = Shop::open(1).await;
    let names: Vec<_> = (0..40).map(|number| format!("request {number}")).collect();
    let of = |request: usize| Reserve::of_lines((0..64).map(move |line| (format!("{request}/{line}"), 1)));
    let requests: [_; 40] = std::array::from_fn(|number| (names[number].as_str(), of(number).once()));
    let held = at_once(&shop.one, requests).await.map(Result::unwrap);
    shop.sweep().await;
    for (number, held) in held.iter().enumerate() {
        assert_eq!(held.lines.len(), 64);
        let request = ("another", of(number).once());
        let [refused] = at_once(&shop.other, [request]).await;
        assert_eq!(reason(refused), Reason::Conflict);
    }
    let last = confirm(&shop.one, &names[39], held[39].token).await.unwrap();
    assert_eq!(last.state, State::Confirmed);
}
