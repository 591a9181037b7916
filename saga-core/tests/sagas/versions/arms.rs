//! Steps that move into arms and out of them, choices that are called otherwise, and what is read across a move.

use saga_core::StepPhase;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::{Migration, Outcome, Output, Runtime, Saga, StepContext, StepError, saga_compensation, saga_step};

use crate::versions::courier::{
    Courier, Ship, call_courier, log, move_and_end, pack, runtime, step, v1, v2, waiting, wrap,
};

/// Everything is packed, and then it is chosen whether it is wrapped as well.
fn packed_first() -> Ship {
    Saga::named("ship")
        .input()
        .version(5)
        .step::<pack>()
        .choose("shipping", |choice| choice.when("parcel", |order: &u32| *order >= 100, Branch::step::<wrap>))
        .step::<call_courier>()
        .build()
        .unwrap()
}

/// The same, with the packing in the arm.
fn packed_in_arm() -> Ship {
    Saga::named("ship")
        .input()
        .version(6)
        .choose("shipping", |choice| {
            choice.when("parcel", |order: &u32| *order >= 100, |branch| branch.step::<pack>().step::<wrap>())
        })
        .step::<call_courier>()
        .build()
        .unwrap()
}

/// What was done on the main line may stand in the arm that was taken, and in no other.
#[tokio::test]
async fn a_step_moves_into_the_arm_that_was_taken() {
    let courier = Courier::default();
    let (parcel, letter) =
        (waiting(&packed_first(), &courier, 200).await, waiting(&packed_first(), &courier, 20).await);
    let to = packed_in_arm();
    let migration = Migration::between(&packed_first(), &to).build().unwrap();
    let refused = move_and_end(&letter, &courier, (&to, &migration), 1).await.unwrap_err();
    assert_eq!(
        refused,
        "`pack` has begun, and stands in the other version in the arm `parcel` of `shipping`, of which this saga took none of \
         its arms"
    );
    let (outcome, _) = move_and_end(&parcel, &courier, (&to, &migration), 2).await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(log(&parcel), ["pack 200", "wrap 200", "unwrap 200", "unpack 200"]);
}

/// What was passed by and stands on the main line has not been done, and what stands behind it has.
#[tokio::test]
async fn a_step_moves_out_of_an_arm_that_was_not_taken() {
    let courier = Courier::default();
    let (parcel, letter) =
        (waiting(&packed_in_arm(), &courier, 200).await, waiting(&packed_in_arm(), &courier, 20).await);
    let to = packed_first();
    let migration = Migration::between(&packed_in_arm(), &to).build().unwrap();
    let refused = move_and_end(&letter, &courier, (&to, &migration), 1).await.unwrap_err();
    assert!(
        refused.contains(
            "`shipping` has begun, and `pack`, which comes before it in the other version, has not been done; if it is not \
             needed there, say so with `.assume_done::<step>()`"
        ),
        "{refused}"
    );
    let passing = Migration::between(&packed_in_arm(), &to).assume_done::<pack>().build().unwrap();
    let (outcome, status) = move_and_end(&letter, &courier, (&to, &passing), 1).await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!((step(&status, "pack").phase, step(&status, "wrap").phase), (StepPhase::Skipped, StepPhase::NotTaken));
    courier.says(0);
    let (outcome, status) = move_and_end(&parcel, &courier, (&to, &passing), 1).await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(step(&status, "pack").phase, StepPhase::Done);
}

#[tokio::test]
async fn a_choice_goes_on_by_another_name() {
    let to: Ship = Saga::named("ship")
        .input()
        .version(7)
        .choose("sending", |choice| {
            choice.when("letter", |_: &u32| true, Branch::step::<wrap>).when(
                "parcel",
                |_: &u32| false,
                Branch::step::<pack>,
            )
        })
        .step::<call_courier>()
        .build()
        .unwrap();
    let courier = Courier::default();
    let store = waiting(&v1(), &courier, 20).await;
    let migration =
        Migration::between(&v1(), &to).choice("shipping", "sending").rename_arm("shipping", "otherwise", "letter");
    let (outcome, status) = move_and_end(&store, &courier, (&to, &migration.build().unwrap()), 1).await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    let choice = step(&status, "sending");
    assert_eq!((choice.phase, choice.taken.as_deref()), (StepPhase::Done, Some("letter")));
}

/// An output that is not there is `None` only where its step is passed by.
#[tokio::test]
async fn a_step_of_the_arm_that_is_gone_past_gives_nothing_to_take() {
    let from = || -> Ship { Saga::named("ship").input().version(8).step::<call_courier>().build().unwrap() };
    let courier = Courier::default();
    let to = v2();
    let store = waiting(&from(), &courier, 20).await;
    let parcel =
        Migration::between(&from(), &to).assume_arm("shipping", "parcel").assume_done::<pack>().build().unwrap();
    let refused = move_and_end(&store, &courier, (&to, &parcel), 1).await.unwrap_err();
    assert_eq!(refused, "`bill` takes the output of `pack`, which this saga went past without one");
    let letter =
        Migration::between(&from(), &to).assume_arm("shipping", "otherwise").assume_done::<wrap>().build().unwrap();
    let (outcome, _) = move_and_end(&store, &courier, (&to, &letter), 1).await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(log(&store), ["bill 20, None, None"]);
}

/// By the same name in each version: what undoes it takes more in the second.
#[saga_step(name = "wrap", compensate = unwrap_box)]
async fn wrap_box(tx: &mut MemoryConn, order: u32) -> Result<(), StepError> {
    tx.log(format!("wrap {order}"));
    Ok(())
}

#[saga_compensation]
async fn unwrap_box(
    tx: &mut MemoryConn,
    order: u32,
    _wrapped: (),
    packed: Option<Output<pack>>,
) -> Result<(), StepError> {
    let packed = packed.map(|Output(packed)| packed);
    tx.log(format!("unwrap {order}, {packed:?}"));
    Ok(())
}

/// G5: what stands is undone by the new version, so its compensation finds what it takes.
#[tokio::test]
async fn g5_a_compensation_that_takes_what_is_not_there_is_no_way_back() {
    let wrapped =
        || -> Ship { Saga::named("ship").input().version(9).step::<wrap>().step::<call_courier>().build().unwrap() };
    let to: Ship = Saga::named("ship")
        .input()
        .version(10)
        .choose("shipping", |choice| choice.when("parcel", |order: &u32| *order >= 100, Branch::step::<pack>))
        .step::<wrap_box>()
        .step::<call_courier>()
        .build()
        .unwrap();
    let courier = Courier::default();
    let store = waiting(&wrapped(), &courier, 20).await;
    let parcel =
        Migration::between(&wrapped(), &to).assume_arm("shipping", "parcel").assume_done::<pack>().build().unwrap();
    let refused = move_and_end(&store, &courier, (&to, &parcel), 2).await.unwrap_err();
    assert_eq!(refused, "the compensation of `wrap` takes the output of `pack`, of which this saga has none");
    let none = Migration::between(&wrapped(), &to).assume_no_arm("shipping").build().unwrap();
    let (outcome, _) = move_and_end(&store, &courier, (&to, &none), 2).await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(log(&store), ["wrap 20", "unwrap 20, None"]);
}

/// A choice that could not be made is made by the version that the saga moved to.
#[tokio::test]
async fn a_choice_that_is_stuck_is_made_anew() {
    let broken: Ship = Saga::named("ship")
        .input()
        .version(11)
        .step::<bill_first>()
        .choose("shipping", |choice| {
            choice
                .when("parcel", |_: &u32| panic!("nobody knows"), Branch::step::<pack>)
                .otherwise(Branch::step::<wrap>)
        })
        .step::<call_courier>()
        .build()
        .unwrap();
    let mended: Ship = Saga::named("ship")
        .input()
        .version(12)
        .step::<bill_first>()
        .choose("shipping", |choice| {
            choice.when("letter", |_: &u32| true, Branch::step::<wrap>).when(
                "parcel",
                |_: &u32| false,
                Branch::step::<pack>,
            )
        })
        .step::<call_courier>()
        .build()
        .unwrap();
    let (store, courier) = (MemoryStore::new(), Courier::default());
    courier.says(1);
    let first = runtime(&store, &courier, &broken).await;
    let outcome = first.start(&broken, "k-1", 20).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Stuck { .. }), "{outcome}");
    first.shutdown().await;
    let builder = Runtime::builder(store.clone()).state(courier.clone()).saga(&mended).saga(&plain_behind());
    let second = builder.start().await.unwrap();
    let gone = Migration::between(&broken, &plain_behind()).remove_choice("shipping").build().unwrap();
    let error = second.admin().control("k-1").migrate(&gone, "test").await.unwrap_err().to_string();
    assert!(error.contains("`shipping` is under way, and the other version does not have it"), "{error}");
    let migration = Migration::between(&broken, &mended).build().unwrap();
    second.admin().control("k-1").migrate(&migration, "the condition is mended").await.unwrap();
    let status = second.status("k-1").await.unwrap().unwrap();
    second.admin().control("k-1").at_revision(status.revision).retry("it is mended").await.unwrap();
    let outcome = second.attach("k-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    let status = second.status("k-1").await.unwrap().unwrap();
    assert_eq!(step(&status, "shipping").taken.as_deref(), Some("letter"));
    assert_eq!(log(&store), ["bill first", "wrap 20"]);
    second.shutdown().await;
}

fn plain_behind() -> Ship {
    let ship = Saga::named("ship").input().version(13).step::<bill_first>().step::<pack>().step::<wrap>();
    ship.step::<call_courier>().build().unwrap()
}

#[saga_step(no_compensation)]
async fn bill_first(tx: &mut MemoryConn, _order: u32) -> Result<(), StepError> {
    tx.log("bill first");
    Ok(())
}

/// A saga that turned round moves with what it has undone, and the rest is undone by the new version.
#[tokio::test]
async fn g5_a_saga_that_turned_round_is_undone_by_the_new_version() {
    #[saga_step(compensate = take_off)]
    async fn put_on(_ctx: &StepContext, _order: u32) -> Result<(), StepError> {
        Ok(())
    }

    #[saga_compensation(retry(attempts = 1))]
    async fn take_off(ctx: &StepContext, _order: u32) -> Result<(), StepError> {
        if ctx.original_key().contains("put-on") { Err(StepError::reject("nobody is there")) } else { Ok(()) }
    }

    let of = |version, arm: &'static str| -> Ship {
        Saga::named("ship")
            .input()
            .version(version)
            .choose("shipping", |choice| {
                choice.when(arm, |_: &u32| true, |branch| branch.step::<pack>().step::<put_on>()).when(
                    "other",
                    |_: &u32| false,
                    Branch::step::<wrap>,
                )
            })
            .step::<call_courier>()
            .build()
            .unwrap()
    };
    let (old, new) = (of(14, "parcel"), of(15, "box"));
    let (store, courier) = (MemoryStore::new(), Courier::default());
    courier.says(2);
    let first = runtime(&store, &courier, &old).await;
    let outcome = first.start(&old, "k-1", 20).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Stuck { .. }), "{outcome}");
    first.shutdown().await;
    let second: Runtime<MemoryStore> = runtime(&store, &courier, &new).await;
    let lost = Migration::between(&old, &new).build().unwrap();
    let error = second.admin().control("k-1").migrate(&lost, "test").await.unwrap_err().to_string();
    assert!(error.contains("took its arm `parcel`, which the other version does not have"), "{error}");
    let migration = Migration::between(&old, &new).rename_arm("shipping", "parcel", "box").build().unwrap();
    second.admin().control("k-1").migrate(&migration, "test").await.unwrap();
    let status = second.status("k-1").await.unwrap().unwrap();
    assert_eq!(step(&status, "wrap").phase, StepPhase::NotTaken);
    second.admin().control("k-1").at_revision(status.revision).skip("it was taken off by hand").await.unwrap();
    let outcome = second.attach("k-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(log(&store), ["pack 20", "unpack 20"]);
    second.shutdown().await;
}
