//! Sagas that take their locks in the transactions that start them: from the second saga on, when the first step is known to be quick.

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{
    Entity, Locked, Outcome, Saga, SagaHandle, State, StepError, StepPhase, Wait, saga_compensation, saga_step,
};

use crate::semantic_locks::support::{Calls, Credit, Go, Order, World, account, named, ship, world};

#[saga_step(compensate = unbook)]
async fn book(
    tx: &mut MemoryConn,
    order: Order,
    credit: Locked<Credit>,
    State(calls): State<Calls>,
) -> Result<u64, StepError> {
    let token = credit.token_of(&Entity::new("account", order.account)).unwrap();
    calls.note("book", &order);
    calls.note(&format!("{token} for"), &order);
    tx.add("booked", 1)?;
    Ok(token)
}

#[saga_compensation]
async fn unbook(tx: &mut MemoryConn, order: Order, _token: u64, State(calls): State<Calls>) -> Result<(), StepError> {
    calls.note("unbook", &order);
    tx.add("booked", -1)?;
    Ok(())
}

/// Fails once for each order.
#[saga_step(no_compensation)]
async fn stumble(_tx: &mut MemoryConn, order: Order, State(calls): State<Calls>) -> Result<(), StepError> {
    let is_first = !calls.all().contains(&format!("stumble {}", order.id));
    calls.note("stumble", &order);
    if is_first { Err(StepError::retry("once more")) } else { Ok(()) }
}

#[saga_step(no_compensation)]
async fn refuse(_tx: &mut MemoryConn, order: Order) -> Result<(), StepError> {
    if order.is_refused { Err(StepError::reject("refused")) } else { Ok(()) }
}

/// A world in which `book` is known to be quick, as it has run for the order 1.
async fn proven(saga: &Saga<MemoryStore, Order>, has_wait: bool) -> World {
    let world = world(saga).await;
    let first = started(&world, saga, Order { account: 7, ..Order::of(1) }).await;
    if has_wait {
        go(&world, "o-1").await;
    }
    first.outcome().await.unwrap();
    world
}

async fn started(world: &World, saga: &Saga<MemoryStore, Order>, order: Order) -> SagaHandle<MemoryStore> {
    world.runtime.start(saga, format!("o-{}", order.id), order).await.unwrap()
}

async fn go(world: &World, key: &str) {
    world.until_it_has_begun(key, "go").await;
    world.runtime.signal(key, "go", &Go).await.unwrap();
}

/// G5: tokens grow also where a lock begins and ends in one commit.
#[tokio::test(start_paused = true)]
async fn g5_each_saga_has_a_higher_token_than_the_one_before() {
    let saga = named().semantic_lock::<Credit, _>(account).step::<book>().build().unwrap();
    let world = proven(&saga, false).await;
    for id in 2..=5 {
        started(&world, &saga, Order::of(id)).await.outcome().await.unwrap();
        let status = world.status(&format!("o-{id}")).await;
        assert_eq!((status.steps[0].phase, status.steps[0].attempts), (StepPhase::Done, 1), "the record of the lock");
    }
    let calls = world.calls.all();
    let tokens = calls.iter().filter_map(|call| call.split_once(" for ")?.0.parse::<u64>().ok());
    let tokens: Vec<u64> = tokens.skip(1).collect();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    world.ends_without_locks().await;
}

/// G5: a saga that goes on behind its first commit has the lock from that commit on.
#[tokio::test(start_paused = true)]
async fn g5_a_saga_that_goes_on_keeps_its_lock() {
    let saga = named().semantic_lock::<Credit, _>(account).step::<book>().wait_for::<Go>(Wait::without_limit());
    let saga = saga.step::<ship>().build().unwrap();
    let world = proven(&saga, true).await;
    let second = started(&world, &saga, Order::of(2)).await;
    world.until_it_has_begun("o-2", "go").await;
    let lock = world.status("o-2").await.steps[0].lock.clone().unwrap();
    assert!(lock.granted && lock.entities.len() == 1, "{lock:?}");
    let third = started(&world, &saga, Order::of(3)).await;
    world.until_it_waits_for_lock("o-3", "credit").await;
    for (key, saga) in [("o-2", second), ("o-3", third)] {
        go(&world, key).await;
        saga.outcome().await.unwrap();
    }
    let calls: Vec<String> = world.calls.all().into_iter().filter(|call| !call.contains(" for ")).skip(2).collect();
    assert_eq!(calls, ["book 2", "ship 2", "book 3", "ship 3"]);
    world.ends_without_locks().await;
}

/// G5: also while its next step waits for another attempt.
#[tokio::test(start_paused = true)]
async fn g5_a_saga_whose_next_step_fails_keeps_its_lock() {
    let saga = named().semantic_lock::<Credit, _>(account).step::<book>().step::<stumble>().build().unwrap();
    let world = proven(&saga, false).await;
    let second = started(&world, &saga, Order::of(2)).await;
    world.until("o-2", "book", |_, phase| phase == StepPhase::Done).await;
    let third = started(&world, &saga, Order::of(3)).await;
    world.until_it_waits_for_lock("o-3", "credit").await;
    second.outcome().await.unwrap();
    third.outcome().await.unwrap();
    let calls = world.calls.all();
    let place = |call: &str| calls.iter().rposition(|known| known == call).unwrap();
    assert!(place("stumble 2") < calls.iter().position(|call| call == "book 3").unwrap(), "{calls:?}");
    world.ends_without_locks().await;
}

/// A saga that compensates has the lock until its last undo.
#[tokio::test(start_paused = true)]
async fn g5_a_saga_that_compensates_has_the_lock_until_its_last_undo() {
    let saga = named().semantic_lock::<Credit, _>(account).step::<book>().step::<refuse>().build().unwrap();
    let world = proven(&saga, false).await;
    let mut running = Vec::new();
    for id in 2..=7 {
        running.push(started(&world, &saga, Order { is_refused: id % 2 == 0, ..Order::of(id) }).await);
    }
    for saga in running {
        let outcome = saga.outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. } | Outcome::Compensated { .. }), "{outcome}");
    }
    let calls = world.calls.all();
    for id in [2, 4, 6] {
        let undone = calls.iter().position(|call| *call == format!("unbook {id}")).unwrap();
        assert!(calls[undone - 1].ends_with(&format!(" for {id}")), "another saga came in between: {calls:?}");
    }
    world.ends_without_locks().await;
}
