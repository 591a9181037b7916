//! Handlers that misbehave: they panic, end their transaction, or never return.

use std::future::pending;

use saga_core::{Outcome, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use saga_tests::{Act, Fixture, Order, Shop, World, charge, on_both_stores};

use crate::{compensated, is_completed, retry, stuck};

async fn a_panic_in_a_transaction<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.plan("once:book", [Act::Panic]);
    assert!(is_completed(&fixture.run(&runtime, "once").await), "it is tried again");
    assert_eq!(fixture.store.total("once:book").await, 1);

    fixture.world.always("always:book", Act::Panic);
    let outcome = fixture.run(&runtime, "always").await;
    assert_eq!(compensated(&outcome), ("book", "it panicked: as planned"));
    let calls = fixture.world.calls_of("always:book");
    assert_eq!(calls, 3, "three attempts; that in the transaction that starts the saga is one of them");
    assert_eq!(fixture.store.total("always:book").await, 0);
    assert_eq!(fixture.world.calls_of("always:book:undo"), 0, "nothing was committed, so nothing is undone");
}

async fn a_panic_in_a_call<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.always("k:charge", Act::Panic);
    let outcome = fixture.run(&runtime, "k").await;
    assert_eq!(compensated(&outcome), ("charge", "it panicked: as planned"));
    assert_eq!(fixture.world.calls_of("k:charge:undo"), 1, "it may have happened, so it is undone");
    assert_eq!(fixture.store.total("booked").await, 0);
}

/// Nobody can tell whether it happened, and its compensation needs to know: a person finds out, and it goes on.
async fn a_panic_in_a_call_that_cannot_be_undone_blindly<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.always("k:ship", Act::Panic);
    let outcome = fixture.run(&runtime, "k").await;
    let (step, reason) = stuck(&outcome);
    assert_eq!(step, "ship");
    assert!(reason.contains("it may or may not have happened, and its compensation needs its output"), "{reason}");
    fixture.world.repair("k:ship");
    assert!(is_completed(&retry(&runtime, "k").await));
    assert_eq!(fixture.world.standing("k:ship"), 1);
}

async fn a_panic_in_a_compensation<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.plan("k:ship", [Act::Reject]);
    fixture.world.always("k:book:undo", Act::Panic);
    let outcome = fixture.run(&runtime, "k").await;
    assert_eq!(stuck(&outcome), ("book", "out of attempts (3): it panicked: as planned"));
    assert_eq!(fixture.store.total("booked").await, 1, "what the attempts wrote is rolled back");
    fixture.world.repair("k:book:undo");
    assert_eq!(compensated(&retry(&runtime, "k").await), ("ship", "declined"));
    assert_eq!(fixture.store.total("booked").await, 0);
}

async fn a_step_that_ends_its_transaction<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.plan("k:book", [Act::EndTransaction]);
    let outcome = fixture.run(&runtime, "k").await;
    assert_eq!(stuck(&outcome), ("book", "step ended its transaction, or left one open in it"));
    assert_eq!(fixture.store.total("booked").await, 0, "nothing of it is committed");
    assert!(is_completed(&fixture.run(&runtime, "other").await), "the others go on");
    assert!(is_completed(&retry(&runtime, "k").await));
    assert_eq!((fixture.store.total("booked").await, fixture.store.total("k:book").await), (2, 1));
}

async fn a_compensation_that_ends_its_transaction<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.plan("k:charge", [Act::Reject]);
    fixture.world.plan("k:book:undo", [Act::EndTransaction]);
    let outcome = fixture.run(&runtime, "k").await;
    assert_eq!(stuck(&outcome), ("book", "step ended its transaction, or left one open in it"));
    assert_eq!(fixture.store.total("booked").await, 1);
    assert_eq!(compensated(&retry(&runtime, "k").await), ("charge", "declined"));
    assert_eq!((fixture.store.total("booked").await, fixture.store.total("k:book:undo").await), (0, 1));
}

#[saga_step(
    no_compensation,
    retry(attempts = 2, base = "1ms", cap = "2ms"),
    timeout = "200ms",
    on_exhausted = "compensate"
)]
async fn hang_in_transaction<S: Shop>(conn: &mut S::Conn, order: Order) -> Result<(), StepError> {
    S::add(conn, "hung", order.amount)?;
    pending().await
}

#[saga_step(compensate = forget, retry(attempts = 2, base = "1ms", cap = "2ms"), timeout = "200ms", on_exhausted = "compensate")]
async fn hang_in_call(ctx: &StepContext, _order: Order, State(world): State<World>) -> Result<i64, StepError> {
    world.always(ctx.key(), Act::Hang);
    world.enter(ctx).await?;
    Ok(0)
}

#[saga_compensation]
async fn forget(
    ctx: &StepContext,
    _order: Order,
    output: Option<i64>,
    State(world): State<World>,
) -> Result<(), StepError> {
    assert_eq!(output, None, "nobody knows what it returned");
    world.enter(ctx).await?;
    Ok(())
}

async fn a_handler_that_awaits_for_ever<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let named = |name: &str| Saga::<S, ()>::named(name).input::<Order>();
    let transaction = named("transaction").step::<hang_in_transaction>().step::<charge>().build().unwrap();
    let call = named("call").step::<hang_in_call>().build().unwrap();
    let runtime = fixture.builder().saga(&transaction).saga(&call).start().await.unwrap();

    let hung = [
        runtime.start(&transaction, "transaction", Order::of(1)).await.unwrap(),
        runtime.start(&call, "call", Order::of(1)).await.unwrap(),
    ];
    assert!(is_completed(&fixture.run(&runtime, "other").await), "the others go on");
    let says = "it took longer than its time limit of 200ms";
    let outcomes: [Outcome; 2] = [hung[0].outcome().await.unwrap(), hung[1].outcome().await.unwrap()];
    assert_eq!(compensated(&outcomes[0]), ("hang-in-transaction", says));
    assert_eq!(compensated(&outcomes[1]), ("hang-in-call", says));
    assert_eq!(fixture.store.total("hung").await, 0, "what it wrote is rolled back");
    assert_eq!(fixture.world.calls_of("call:hang-in-call:undo"), 1, "it may have happened, so it is undone");
    assert_eq!(fixture.world.calls_of("transaction:charge"), 0);
}

on_both_stores!(
    a_panic_in_a_transaction,
    a_panic_in_a_call,
    a_panic_in_a_call_that_cannot_be_undone_blindly,
    a_panic_in_a_compensation,
    a_step_that_ends_its_transaction,
    a_compensation_that_ends_its_transaction,
    a_handler_that_awaits_for_ever,
);
