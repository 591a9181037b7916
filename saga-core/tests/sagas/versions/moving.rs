//! Sagas that move from one version to another.

use std::sync::atomic::Ordering;
use std::time::Duration;

use saga_core::StepPhase;
use saga_core::engine::RuntimeError;
use saga_core::key::{Key, Tenant};
use saga_core::memory::MemoryStore;
use saga_core::store::{HistoryKind, Sagas as _, WorkKind};
use saga_core::{Migration, Outcome, Runtime, Saga};

use crate::versions::shop::{
    Buy, Shop, call, charge, confirm, left_behind, phases, reserve_stock, start, status, take_stock, take_text, v1, v2,
    v3, weigh,
};

const HOUR: Duration = Duration::from_hours(1);

fn to_v2() -> Migration<MemoryStore> {
    let migration = Migration::between(&v1(), &v2());
    migration.step_with::<take_stock, reserve_stock>(|order| (order, "moved".to_owned())).build().unwrap()
}

#[tokio::test]
async fn a_saga_moves_and_goes_on_as_the_new_version() {
    let shop = Shop::new();
    let store = left_behind(&shop).await;
    let runtime = start(&store, &shop, &[&v3()]).await;
    let migration = Migration::between(&v1(), &v3()).build().unwrap();
    runtime.admin().control("k-1").migrate(&migration, "weigh every order").await.unwrap();
    runtime.admin().control("k-1").migrate(&migration, "weigh every order").await.expect("it moved already");
    shop.is_open.store(true, Ordering::SeqCst);
    let outcome = runtime.attach("k-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    let status = status(&runtime, "k-1").await;
    assert_eq!((status.summary.version, phases(&status)[2]), (3, ("weigh", StepPhase::Done)));
    let moves: Vec<&str> = status
        .history
        .iter()
        .filter(|happening| happening.kind == HistoryKind::Migrated)
        .map(|happening| happening.detail.as_str())
        .collect();
    assert_eq!(moves, ["from buy version 1 to buy version 3: weigh every order"]);
    assert_eq!(store.read(|table| (table.counter("taken"), table.counter("confirmed"))), (1, 1));
    runtime.shutdown().await;
}

/// Behind the pivot a deadline says nothing, also where a saga only comes behind it by moving.
#[tokio::test]
async fn a_saga_that_moves_past_a_pivot_has_no_deadline_any_more() {
    let (shop, store) = (Shop::new(), MemoryStore::new());
    let buy = || Saga::named("buy").input();
    let old: Buy = buy().deadline(HOUR).step::<take_stock>().step::<charge>().build().unwrap();
    let new: Buy = buy().version(2).deadline(HOUR).step::<take_stock>().pivot().step::<charge>().build().unwrap();
    let runtime = start(&store, &shop, &[&old]).await;
    runtime.start(&old, "k-1", 7).await.unwrap();
    shop.was_tried.notified().await;
    assert!(status(&runtime, "k-1").await.deadline.is_some());
    runtime.shutdown().await;
    let rows = async || {
        let key = Key::new("k-1").unwrap();
        let stored = store.saga_with_steps(&Tenant::default(), &key).await.unwrap().unwrap();
        stored.work.iter().map(|work| work.kind).collect::<Vec<_>>()
    };
    assert_eq!(rows().await, [WorkKind::Deadline, WorkKind::Do]);
    let runtime = start(&store, &shop, &[&new]).await;
    let migration = Migration::between(&old, &new).build().unwrap();
    runtime.admin().control("k-1").migrate(&migration, "stock that was taken is sold").await.unwrap();
    assert_eq!((status(&runtime, "k-1").await.deadline, rows().await), (None, vec![WorkKind::Do]));
    shop.is_open.store(true, Ordering::SeqCst);
    let outcome = runtime.attach("k-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    runtime.shutdown().await;
}

/// G5: what took effect before the move is undone by the new version, which is given what the old one had returned.
#[tokio::test]
async fn g5_what_was_done_before_a_move_is_undone_behind_it() {
    let shop = Shop::new();
    let store = left_behind(&shop).await;
    // Passing a step whose output a later one takes is refused.
    let buy = Saga::named("buy").input().version(4);
    let v4: Buy = buy.step::<reserve_stock>().step::<weigh>().step::<charge>().step::<confirm>().build().unwrap();
    let runtime = start(&store, &shop, &[&v2(), &v4]).await;
    let refused = |error: RuntimeError| match error {
        RuntimeError::Refused { problem, .. } => problem,
        other => panic!("{other}"),
    };
    let problem = refused(runtime.admin().control("k-1").migrate(&to_v2(), "test").await.unwrap_err());
    assert!(problem.contains("`charge` has begun, and `weigh`, which comes before it"), "{problem}");
    let passing = Migration::between(&v1(), &v2())
        .step_with::<take_stock, reserve_stock>(|order| (order, "moved".to_owned()))
        .assume_done::<weigh>()
        .build()
        .unwrap();
    let problem = refused(runtime.admin().control("k-1").migrate(&passing, "test").await.unwrap_err());
    assert!(
        problem.contains("`confirm` takes the output of `weigh`, which this saga went past without one"),
        "{problem}"
    );

    let migration = Migration::between(&v1(), &v4)
        .step_with::<take_stock, reserve_stock>(|order| (order, "moved".to_owned()))
        .assume_done::<weigh>()
        .build()
        .unwrap();
    runtime.admin().control("k-1").migrate(&migration, "test").await.unwrap();
    shop.rejects.store(true, Ordering::SeqCst);
    let outcome = runtime.attach("k-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(store.read(|table| table.counter("taken")), 0);
    assert_eq!(store.read(|table| table.get("released").map(<[u8]>::to_vec)), Some(b"moved".to_vec()));
    let status = status(&runtime, "k-1").await;
    assert_eq!(phases(&status)[..2], [("reserve-stock", StepPhase::Undone), ("weigh", StepPhase::Skipped)]);
    runtime.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_read_as_the_new_types_is_refused() {
    let shop = Shop::new();
    let store = left_behind(&shop).await;
    let text: Buy =
        Saga::named("buy").input().version(5).step::<take_text>().step::<charge>().step::<confirm>().build().unwrap();
    let longer: Saga<MemoryStore, (u32, u32)> = {
        let saga = Saga::named("buy").input::<(u32, u32)>().version(6);
        let saga = saga
            .step_from::<take_stock, _>(|(order, _): &(u32, u32)| *order)
            .step_from::<charge, _>(|(order, _): &(u32, u32)| *order);
        saga.step_from::<confirm, _>(|(order, _): &(u32, u32)| *order).build().unwrap()
    };
    let builder = Runtime::builder(store.clone()).state(shop.clone()).saga(&text).saga(&longer);
    let runtime = builder.start().await.unwrap();
    let migration = Migration::between(&v1(), &text).build().unwrap();
    let report = runtime.admin().check_migration(&migration).await.unwrap();
    assert!(report.refused[0].1.contains("what `take-stock` returned cannot be taken"), "{report}");
    let migration = Migration::between(&v1(), &longer).build().unwrap();
    let report = runtime.admin().check_migration(&migration).await.unwrap();
    assert!(report.refused[0].1.contains("its input is not one of buy version 6"), "{report}");
    let other = Migration::between(&longer, &text).build().unwrap();
    let error = runtime.admin().control("k-1").migrate(&other, "test").await.unwrap_err().to_string();
    assert!(error.contains("it is a saga of buy version 1, and not of buy version 6"), "{error}");
    let nowhere = Migration::between(&v1(), &v3()).build().unwrap();
    let error = runtime.admin().control("k-1").migrate(&nowhere, "test").await.unwrap_err().to_string();
    assert!(error.contains("buy version 3 is not registered here"), "{error}");
    let error = runtime.admin().control("k-1").migrate(&migration, " ").await.unwrap_err().to_string();
    assert!(error.contains("give a reason"), "{error}");
    assert!(matches!(runtime.admin().control("k-9").migrate(&migration, "test").await, Err(RuntimeError::NoSaga(_))));
    runtime.shutdown().await;
}

/// G7: while somebody runs a step of it, a saga stays what it is.
#[tokio::test]
async fn g7_a_saga_whose_step_is_running_is_busy() {
    let (store, shop) = (MemoryStore::new(), Shop::new());
    let calls = |version| -> Buy {
        Saga::named("buy").input().version(version).step::<call>().step::<confirm>().build().unwrap()
    };
    let (one, two) = (calls(1), calls(2));
    let runtime = start(&store, &shop, &[&one, &two]).await;
    let running = runtime.start(&one, "k-1", 7).await.unwrap();
    shop.was_tried.notified().await;
    let migration = Migration::between(&one, &two).build().unwrap();
    let error = runtime.admin().control("k-1").migrate(&migration, "test").await.unwrap_err();
    assert!(matches!(error, RuntimeError::Busy { .. }), "{error}");
    let report = runtime.admin().migrate_all(&migration, "test").await.unwrap();
    assert_eq!(report.to_string(), "0 moved, 1 busy, 0 refused");
    shop.hangs.add_permits(1);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    let error = runtime.admin().control("k-1").migrate(&migration, "test").await.unwrap_err().to_string();
    assert!(error.contains("it has ended, and stays on the version that it ended with"), "{error}");
    runtime.shutdown().await;
}

#[tokio::test]
async fn all_that_can_move_do() {
    let shop = Shop::new();
    let store = left_behind(&shop).await;
    let runtime = start(&store, &shop, &[&v1()]).await;
    for number in 2..=5 {
        runtime.start(&v1(), format!("k-{number}"), 7).await.unwrap();
    }
    shop.was_tried.notified().await;
    runtime.shutdown().await;
    let runtime = start(&store, &shop, &[&v3()]).await;
    let migration = Migration::between(&v1(), &v3()).build().unwrap();
    let looked = runtime.admin().check_migration(&migration).await.unwrap();
    assert_eq!((looked.moved.len(), status(&runtime, "k-5").await.summary.version), (5, 1), "a look moves nothing");
    let report = runtime.admin().migrate_all(&migration, "test").await.unwrap();
    assert_eq!(report.to_string(), "5 moved, 0 busy, 0 refused");
    assert_eq!(
        runtime.admin().migrate_all(&migration, "test").await.unwrap().to_string(),
        "0 moved, 0 busy, 0 refused"
    );
    shop.is_open.store(true, Ordering::SeqCst);
    for number in 1..=5 {
        let outcome = runtime.attach(format!("k-{number}")).await.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    assert_eq!(store.read(|table| table.counter("confirmed")), 5);
    runtime.shutdown().await;
}

#[test]
fn a_migration_says_what_is_missing() {
    let problems =
        |migration: Result<Migration<MemoryStore>, saga_core::saga::MigrationError>| migration.unwrap_err().to_string();
    let error = problems(Migration::between(&v1(), &v2()).build());
    assert_eq!(
        error,
        "sagas of buy version 1 cannot be moved to buy version 2: buy version 2 has no step `take-stock`; say which one it \
         became with `.step::<take_stock, ..>()`, or leave it out with `.remove`"
    );
    let error = problems(Migration::between(&v1(), &v1()).build());
    assert!(error.contains("they are one version"), "{error}");
    let sell: Buy = Saga::named("sell").input().version(2).step::<confirm>().build().unwrap();
    let error = problems(Migration::between(&v1(), &sell).remove::<take_stock>().remove::<charge>().build());
    assert!(error.contains("they are two sagas"), "{error}");
    let error = problems(Migration::between(&v1(), &v3()).assume_done::<charge>().remove::<call>().build());
    assert!(error.contains("buy version 1 has no step `call`"), "{error}");
    assert!(error.contains("`charge` is in both versions"), "{error}");
    let error = problems(Migration::between(&v2(), &v1()).step::<weigh, charge>().remove::<reserve_stock>().build());
    assert!(error.contains("`weigh` cannot become `charge`, which is another step of buy version 2"), "{error}");
}
