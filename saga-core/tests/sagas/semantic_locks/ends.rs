//! What ends a lock or a wait before the saga has ended, and what a sub-saga leaves locked.

use saga_core::engine::{CompensationCause, SagaAdmin};
use saga_core::saga::Branch;
use saga_core::{Migration, Outcome, Runtime, Saga, StepPhase, SubSaga, Wait};

use crate::semantic_locks::support::{
    Credit, Further, Go, HOUR, Order, Stock, World, account, charge, check, item, named, ship, world,
};

#[tokio::test(start_paused = true)]
async fn a_lock_is_released_early_behind_the_pivot() {
    let saga = named()
        .semantic_lock::<Credit, _>(account)
        .step::<ship>()
        .pivot()
        .release::<Credit>()
        .wait_for::<Go>(Wait::without_limit())
        .build()
        .unwrap();
    let world = world(&saga).await;
    for id in 1..=3 {
        world.runtime.start(&saga, format!("o-{id}"), Order::of(id)).await.unwrap();
    }
    for id in 1..=3 {
        world.until_it_has_begun(&format!("o-{id}"), "go").await;
        world.runtime.signal(format!("o-{id}"), "go", &Go).await.unwrap();
    }
    for id in 1..=3 {
        world.runtime.attach(format!("o-{id}")).await.unwrap().outcome().await.unwrap();
    }
    world.ends_without_locks().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_wait_and_the_place_in_the_queue() {
    let saga = named().step::<charge>().semantic_lock::<Credit, _>(account);
    let saga = saga.wait_for::<Go>(Wait::without_limit()).build().unwrap();
    let world = world(&saga).await;
    let first = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world.until_it_has_begun("o-1", "go").await;
    let second = world.runtime.start(&saga, "o-2", Order::of(2)).await.unwrap();
    world.until_it_waits_for_lock("o-2", "credit").await;
    let third = world.runtime.start(&saga, "o-3", Order::of(3)).await.unwrap();
    world.until_it_waits_for_lock("o-3", "credit").await;
    world.runtime.admin().control("o-2").cancel("not wanted").await.unwrap();
    let outcome = second.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome}");
    let waits = world.until_it_waits_for_lock("o-3", "credit").await;
    assert_eq!(waits.steps[1].lock.as_ref().unwrap().waits_for.len(), 1);
    for (key, saga) in [("o-1", first), ("o-3", third)] {
        world.until_it_has_begun(key, "go").await;
        world.runtime.signal(key, "go", &Go).await.unwrap();
        saga.outcome().await.unwrap();
    }
    world.ends_without_locks().await;
}

/// A branch that fails ends the wait of the other branch.
#[tokio::test(start_paused = true)]
async fn a_failed_branch_ends_the_wait_of_another() {
    let saga = named().parallel(|group| {
        group
            .branch(|branch: Branch<_, _>| branch.semantic_lock::<Credit, _>(account).step::<charge>())
            .branch(|branch: Branch<_, _>| branch.wait_for::<Go>(Wait::without_limit()).step::<check>())
    });
    let saga = saga.wait_for::<Further>(Wait::without_limit()).build().unwrap();
    let world = world(&saga).await;
    let first = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world.until("o-1", "charge", |_, phase| phase == StepPhase::Done).await;
    let refused = Order { is_refused: true, ..Order::of(2) };
    let second = world.runtime.start(&saga, "o-2", refused).await.unwrap();
    world.until_it_waits_for_lock("o-2", "credit").await;
    world.runtime.signal("o-2", "go", &Go).await.unwrap();
    let outcome = second.outcome().await.unwrap();
    assert!(outcome.to_string().contains("refused"), "{outcome}");
    world.runtime.signal("o-1", "go", &Go).await.unwrap();
    world.until_it_has_begun("o-1", "further").await;
    world.runtime.signal("o-1", "further", &Further).await.unwrap();
    first.outcome().await.unwrap();
    assert_eq!(world.calls.all(), ["charge 1", "check 2", "check 1"]);
    world.ends_without_locks().await;
}

struct Billing;

impl SubSaga for Billing {
    const NAME: &'static str = "billing";
    type Input = Order;
    type Output = ();
}

/// The sub-saga that took the lock is of an older version than the one in the definition of the outer saga.
#[tokio::test(start_paused = true)]
async fn the_lock_of_an_older_sub_saga_ends_with_the_outer_saga() {
    let billing = |version| Saga::named("billing").input::<Order>().version(version);
    let older = billing(1).semantic_lock::<Credit, _>(account).step::<charge>().build().unwrap();
    let newer = billing(2).step::<charge>().build().unwrap();
    let outer = |billing| named().sub_saga::<Billing>(billing).wait_for::<Go>(Wait::without_limit()).build().unwrap();
    let world = world(&outer(&older)).await;
    world.runtime.start(&outer(&older), "o-1", Order::of(1)).await.unwrap();
    world.until_it_has_begun("o-1", "go").await;
    world.runtime.shutdown().await;
    let runtime = Runtime::builder(world.store.clone()).saga(&outer(&newer)).saga(&older).state(world.calls.clone());
    let world = World { runtime: runtime.start().await.unwrap(), ..world };
    world.runtime.signal("o-1", "go", &Go).await.unwrap();
    world.runtime.attach("o-1").await.unwrap().outcome().await.unwrap();
    world.ends_without_locks().await;
}

/// In the other version nothing releases the lock, which another saga may have by now.
#[tokio::test(start_paused = true)]
async fn a_move_to_another_version_brings_no_lock_back() {
    let shipped = |version| named().version(version).semantic_lock::<Credit, _>(account).step::<ship>().pivot();
    let older = shipped(1).release::<Credit>().wait_for::<Go>(Wait::without_limit()).build().unwrap();
    let newer = shipped(2).wait_for::<Go>(Wait::without_limit()).build().unwrap();
    let world = world(&older).await;
    let running = world.runtime.start(&older, "o-1", Order::of(1)).await.unwrap();
    world.until_it_has_begun("o-1", "go").await;
    let migration = Migration::between(&older, &newer).build().unwrap();
    let admin = SagaAdmin::new(world.store.clone()).saga(&older).saga(&newer).actor("ann");
    let refused = admin.control("o-1").migrate(&migration, "nothing is released").await.unwrap_err().to_string();
    assert!(refused.contains("it has released its semantic lock `credit`"), "{refused}");
    world.runtime.signal("o-1", "go", &Go).await.unwrap();
    running.outcome().await.unwrap();
    world.ends_without_locks().await;
}

/// A sub-saga goes on in a pause of its outer saga, under the locks of both.
#[tokio::test(start_paused = true)]
async fn no_lock_is_taken_from_a_saga_whose_sub_saga_runs() {
    let billing = Saga::named("billing").input::<Order>();
    let billing = billing.wait_for::<Go>(Wait::without_limit()).step::<charge>().build().unwrap();
    let saga = named().semantic_lock::<Credit, _>(account).sub_saga::<Billing>(&billing).build().unwrap();
    let world = world(&saga).await;
    let running = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world
        .until("o-1", "billing", |status, _| status.steps[1].child.as_ref().is_some_and(|it| it.status.is_some()))
        .await;
    let control = world.runtime.admin().actor("ann").control("o-1");
    control.pause("it takes too long").await.unwrap();
    // Its row falls due meanwhile, and is parked.
    tokio::time::sleep(HOUR).await;
    let refused = control.release_lock::<Credit>("it takes too long").await.unwrap_err();
    assert!(refused.to_string().contains("under way"), "{refused}");
    world.runtime.signal("o-1>billing", "go", &Go).await.unwrap();
    control.resume("go on").await.unwrap();
    running.outcome().await.unwrap();
    world.ends_without_locks().await;
}

/// The locks of a sub-saga last as long as it may have to be undone, and it never waits for its outer saga.
#[tokio::test(start_paused = true)]
async fn the_locks_of_a_sub_saga_belong_to_the_outermost_saga() {
    let billing = Saga::named("billing").input::<Order>();
    let billing = billing.semantic_lock::<Credit, _>(account).step::<charge>().build().unwrap();
    let saga = named()
        .semantic_lock::<Stock, _>(|order: &Order| if order.id == 1 { account(order) } else { item(order) })
        .sub_saga::<Billing>(&billing)
        .wait_for::<Go>(Wait::without_limit())
        .build()
        .unwrap();
    let world = world(&saga).await;
    let first = world.runtime.start(&saga, "o-1", Order::of(1)).await.unwrap();
    world.until_it_has_begun("o-1", "go").await;
    let second = world.runtime.start(&saga, "o-2", Order::of(2)).await.unwrap();
    world
        .until("o-2", "billing", |status, _| status.steps[1].child.as_ref().is_some_and(|it| it.status.is_some()))
        .await;
    let inner = world.until_it_waits_for_lock("o-2>billing", "credit").await;
    assert_eq!(inner.steps[0].lock.as_ref().unwrap().waits_for[0].as_str(), "o-1");
    for (key, saga) in [("o-1", first), ("o-2", second)] {
        world.until_it_has_begun(key, "go").await;
        world.runtime.signal(key, "go", &Go).await.unwrap();
        saga.outcome().await.unwrap();
    }
    assert_eq!(world.calls.all(), ["charge 1", "charge 2"]);
    world.ends_without_locks().await;
}
