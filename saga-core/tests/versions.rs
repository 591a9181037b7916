//! Versions of a definition: side by side, refused when they changed, waiting where nobody knows them, and moved.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use saga_core::engine::{BuildError, RuntimeError, SagaStatus};
use saga_core::machine::StepPhase;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::store::{HistoryKind, SagaFilter};
use saga_core::{
    Migration, Outcome, Output, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step,
};
use tokio::sync::{Notify, Semaphore};

/// Whether the card works, who waits until it was tried, and a call that hangs.
#[derive(Clone)]
struct Shop {
    is_open: Arc<AtomicBool>,
    rejects: Arc<AtomicBool>,
    was_tried: Arc<Notify>,
    hangs: Arc<Semaphore>,
}

impl Shop {
    fn new() -> Self {
        Self {
            is_open: Arc::default(),
            rejects: Arc::default(),
            was_tried: Arc::default(),
            hangs: Arc::new(Semaphore::new(0)),
        }
    }
}

#[saga_step(compensate = put_back)]
async fn take_stock(conn: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    conn.add("taken", 1)?;
    Ok(order)
}

#[saga_compensation]
async fn put_back(conn: &mut MemoryConn, _order: u32, taken: u32) -> Result<(), StepError> {
    conn.add("taken", -1)?;
    conn.put("put back", taken.to_be_bytes())?;
    Ok(())
}

/// What `take_stock` is in the second version: another name, and more that it returns.
#[saga_step(compensate = release_stock)]
async fn reserve_stock(conn: &mut MemoryConn, order: u32) -> Result<(u32, String), StepError> {
    conn.add("taken", 1)?;
    Ok((order, "shelf".to_owned()))
}

#[saga_compensation]
async fn release_stock(conn: &mut MemoryConn, _order: u32, reserved: (u32, String)) -> Result<(), StepError> {
    conn.add("taken", -1)?;
    conn.put("released", reserved.1.as_bytes())?;
    Ok(())
}

#[saga_step(compensate = refund, retry(attempts = 1000, base = "1ms", cap = "1ms"))]
async fn charge(ctx: &StepContext, order: u32, State(shop): State<Shop>) -> Result<u32, StepError> {
    let _ = ctx;
    shop.was_tried.notify_one();
    if shop.rejects.load(Ordering::SeqCst) {
        return Err(StepError::reject("no money"));
    }
    if shop.is_open.load(Ordering::SeqCst) { Ok(order) } else { Err(StepError::not_sent("closed")) }
}

#[saga_compensation]
async fn refund(ctx: &StepContext, _order: u32) -> Result<(), StepError> {
    let _ = ctx;
    Ok(())
}

#[saga_step(compensate = refund)]
async fn call(ctx: &StepContext, order: u32, State(shop): State<Shop>) -> Result<u32, StepError> {
    let _ = ctx;
    shop.was_tried.notify_one();
    let _permit = shop.hangs.acquire().await.unwrap();
    Ok(order)
}

#[saga_step]
async fn confirm(conn: &mut MemoryConn, _order: u32) -> Result<(), StepError> {
    conn.add("confirmed", 1)?;
    Ok(())
}

#[saga_step(no_compensation)]
async fn weigh(order: u32) -> Result<u32, StepError> {
    Ok(order)
}

#[saga_step(name = "confirm")]
async fn confirm_by_weight(conn: &mut MemoryConn, _order: u32, Output(weight): Output<weigh>) -> Result<(), StepError> {
    conn.add("confirmed", i64::from(weight))?;
    Ok(())
}

#[saga_step(name = "take-stock", compensate = put_back_text)]
async fn take_text(conn: &mut MemoryConn, _order: u32) -> Result<String, StepError> {
    conn.add("taken", 1)?;
    Ok(String::new())
}

#[saga_compensation]
async fn put_back_text(_conn: &mut MemoryConn, _order: u32, _taken: String) -> Result<(), StepError> {
    Ok(())
}

type Buy = Saga<MemoryStore, u32>;

fn v1() -> Buy {
    Saga::named("buy").input().step::<take_stock>().step::<charge>().step::<confirm>().build().unwrap()
}

fn v2() -> Buy {
    let buy = Saga::named("buy").input().version(2);
    buy.step::<reserve_stock>().step::<weigh>().step::<charge>().step::<confirm_by_weight>().build().unwrap()
}

fn v3() -> Buy {
    Saga::named("buy")
        .input()
        .version(3)
        .step::<take_stock>()
        .step::<charge>()
        .step::<weigh>()
        .step::<confirm>()
        .build()
        .unwrap()
}

async fn start(store: &MemoryStore, shop: &Shop, sagas: &[&Buy]) -> Runtime<MemoryStore> {
    let mut builder = Runtime::builder(store.clone()).state(shop.clone());
    for saga in sagas {
        builder = builder.saga(saga);
    }
    builder.start().await.unwrap()
}

async fn refusal(store: &MemoryStore, saga: &Buy) -> Option<String> {
    match Runtime::builder(store.clone()).state(Shop::new()).saga(saga).start().await {
        Ok(runtime) => {
            runtime.shutdown().await;
            None
        }
        Err(BuildError::Invalid(problems)) => Some(problems.join("; ")),
        Err(error) => panic!("{error}"),
    }
}

async fn status(runtime: &Runtime<MemoryStore>, key: &str) -> SagaStatus {
    runtime.saga(key).await.unwrap().unwrap()
}

fn phases(status: &SagaStatus) -> Vec<(&str, StepPhase)> {
    status.steps.iter().map(|step| (step.step.as_str(), step.phase)).collect()
}

/// A store with a saga of the first version whose card is refused again and again, and no process.
async fn left_behind(shop: &Shop) -> MemoryStore {
    let store = MemoryStore::new();
    let runtime = start(&store, shop, &[&v1()]).await;
    runtime.start(&v1(), "k-1", 7).await.unwrap();
    shop.was_tried.notified().await;
    runtime.shutdown().await;
    store
}

#[tokio::test]
async fn versions_run_side_by_side_and_each_saga_stays_on_its_own() {
    let (store, shop) = (MemoryStore::new(), Shop::new());
    shop.is_open.store(true, Ordering::SeqCst);
    let (first, third) = (v1(), v3());
    let runtime = start(&store, &shop, &[&first, &third]).await;
    let (one, other) = (runtime.start(&first, "k-1", 7).await.unwrap(), runtime.start(&third, "k-3", 7).await.unwrap());
    assert!(matches!(one.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert!(matches!(other.outcome().await.unwrap(), Outcome::Completed { .. }));
    let (one, other) = (status(&runtime, "k-1").await, status(&runtime, "k-3").await);
    assert_eq!((one.summary.version, one.steps.len()), (1, 3));
    assert_eq!((other.summary.version, other.steps.len()), (3, 4));
    // The same key is the same saga, on the version that it was started with (G6).
    let again = runtime.start(&third, "k-1", 7).await.unwrap();
    assert!(again.already_known());
    assert_eq!(status(&runtime, "k-1").await.summary.version, 1);
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_definition_that_changed_under_its_version_is_refused_and_says_what_changed() {
    let store = left_behind(&Shop::new()).await;
    assert_eq!(refusal(&store, &v1()).await, None, "it did not change");
    let cases: [(Buy, &[&str]); 4] = [
        (
            Saga::named("buy")
                .input()
                .step::<take_stock>()
                .step::<weigh>()
                .step::<charge>()
                .step::<confirm>()
                .build()
                .unwrap(),
            &["`weigh` was added behind `take-stock`"],
        ),
        (
            Saga::named("buy").input().step::<charge>().step::<take_stock>().step::<confirm>().build().unwrap(),
            &["`take-stock` was moved: it came first, and comes behind `charge`"],
        ),
        (
            Saga::named("buy").input().step::<take_stock>().pivot().step::<charge>().build().unwrap(),
            &["`confirm` was removed", "the pivot was `confirm`, and is `take-stock`"],
        ),
        (
            Saga::named("buy")
                .input()
                .parallel(|group| group.branch(Branch::step::<take_stock>).branch(Branch::step::<charge>))
                .step::<confirm>()
                .build()
                .unwrap(),
            &["`charge` was moved: it came behind `take-stock`, and comes first"],
        ),
    ];
    for (changed, expected) in cases {
        let refusal = refusal(&store, &changed).await.expect("it changed");
        assert!(refusal.starts_with("buy version 1 has changed: since sagas of it were started, "), "{refusal}");
        assert!(refusal.contains("give the changed steps `.version(2)`"), "{refusal}");
        for expected in expected {
            assert!(refusal.contains(expected), "{expected}: {refusal}");
        }
    }
    assert_eq!(refusal(&store, &v1()).await, None, "who was refused left nothing behind");
}

#[tokio::test]
async fn a_definition_without_sagas_may_change() {
    let store = MemoryStore::new();
    assert_eq!(refusal(&store, &v1()).await, None);
    let changed = Saga::named("buy").input().step::<charge>().step::<confirm>().build().unwrap();
    assert_eq!(refusal(&store, &changed).await, None, "no saga was started with it");
    assert_eq!(refusal(&store, &v1()).await, None);
}

#[tokio::test]
async fn many_processes_register_at_once() {
    let store = MemoryStore::new();
    let starts: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn({
                let store = store.clone();
                async move { refusal(&store, &v1()).await }
            })
        })
        .collect();
    for start in starts {
        assert_eq!(start.await.unwrap(), None);
    }
}

#[tokio::test]
async fn sagas_of_a_version_that_nobody_knows_wait_and_are_listed() {
    let shop = Shop::new();
    let store = left_behind(&shop).await;
    shop.is_open.store(true, Ordering::SeqCst);
    let runtime = start(&store, &shop, &[&v2()]).await;

    let waiting = runtime.list(SagaFilter::default()).await.unwrap().remove(0);
    let reason = waiting.waits_for.expect("nobody knows its version");
    assert!(reason.contains("buy version 1 is not registered here"), "{reason}");
    let unregistered = runtime.inspector().unregistered().await.unwrap();
    assert_eq!(unregistered[0].to_string(), "1 command of buy version 1 waits, which is not registered here");
    // What the store keeps of the definition is enough to show it.
    let shown = status(&runtime, "k-1").await;
    let expected = [("take-stock", StepPhase::Done), ("charge", StepPhase::Started), ("confirm", StepPhase::Ready)];
    assert_eq!(phases(&shown), expected);
    assert_eq!(shown.steps[1].after, ["take-stock"]);
    assert!(matches!(
        runtime.operator("k-1", shown.revision).unwrap().retry("why not").await,
        Err(RuntimeError::UnknownDefinition { .. })
    ));
    runtime.shutdown().await;

    let runtime = start(&store, &shop, &[&v1(), &v2()]).await;
    let outcome = runtime.attach("k-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert!(runtime.inspector().unregistered().await.unwrap().is_empty());
    assert_eq!(runtime.list(SagaFilter::default()).await.unwrap()[0].waits_for, None);
    runtime.shutdown().await;
}

fn to_v2() -> Migration<MemoryStore> {
    let migration = Migration::from(&v1()).to(&v2());
    migration.step_with::<take_stock, reserve_stock>(|order| (order, "moved".to_owned())).build().unwrap()
}

#[tokio::test]
async fn a_saga_moves_and_goes_on_as_the_new_version() {
    let shop = Shop::new();
    let store = left_behind(&shop).await;
    let runtime = start(&store, &shop, &[&v3()]).await;
    let migration = Migration::from(&v1()).to(&v3()).build().unwrap();
    runtime.migrate(&migration, "k-1", "weigh every order").await.unwrap();
    runtime.migrate(&migration, "k-1", "weigh every order").await.expect("it moved already");
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
    let problem = refused(runtime.migrate(&to_v2(), "k-1", "test").await.unwrap_err());
    assert!(problem.contains("`charge` has begun, and `weigh`, which comes before it"), "{problem}");
    let passing = Migration::from(&v1())
        .to(&v2())
        .step_with::<take_stock, reserve_stock>(|order| (order, "moved".to_owned()))
        .pass::<weigh>()
        .build()
        .unwrap();
    let problem = refused(runtime.migrate(&passing, "k-1", "test").await.unwrap_err());
    assert!(
        problem.contains("`confirm` takes the output of `weigh`, which this saga went past without one"),
        "{problem}"
    );

    let migration = Migration::from(&v1())
        .to(&v4)
        .step_with::<take_stock, reserve_stock>(|order| (order, "moved".to_owned()))
        .pass::<weigh>()
        .build()
        .unwrap();
    runtime.migrate(&migration, "k-1", "test").await.unwrap();
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
        let saga = saga.step_with::<take_stock>(|(order, _)| *order).step_with::<charge>(|(order, _)| *order);
        saga.step_with::<confirm>(|(order, _)| *order).build().unwrap()
    };
    let builder = Runtime::builder(store.clone()).state(shop.clone()).saga(&text).saga(&longer);
    let runtime = builder.start().await.unwrap();
    let migration = Migration::from(&v1()).to(&text).build().unwrap();
    let report = runtime.check_migration(&migration).await.unwrap();
    assert!(report.refused[0].1.contains("what `take-stock` returned cannot be taken"), "{report}");
    let migration = Migration::from(&v1()).to(&longer).build().unwrap();
    let report = runtime.check_migration(&migration).await.unwrap();
    assert!(report.refused[0].1.contains("its input is not one of buy version 6"), "{report}");
    let other = Migration::from(&longer).to(&text).build().unwrap();
    let error = runtime.migrate(&other, "k-1", "test").await.unwrap_err().to_string();
    assert!(error.contains("it is a saga of buy version 1, and not of buy version 6"), "{error}");
    let nowhere = Migration::from(&v1()).to(&v3()).build().unwrap();
    let error = runtime.migrate(&nowhere, "k-1", "test").await.unwrap_err().to_string();
    assert!(error.contains("buy version 3 is not registered here"), "{error}");
    let error = runtime.migrate(&migration, "k-1", " ").await.unwrap_err().to_string();
    assert!(error.contains("give a reason"), "{error}");
    assert!(matches!(runtime.migrate(&migration, "k-9", "test").await, Err(RuntimeError::NoSaga(_))));
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
    let migration = Migration::from(&one).to(&two).build().unwrap();
    let error = runtime.migrate(&migration, "k-1", "test").await.unwrap_err();
    assert!(matches!(error, RuntimeError::Busy { .. }), "{error}");
    let report = runtime.migrate_all(&migration, "test").await.unwrap();
    assert_eq!(report.to_string(), "0 moved, 1 busy, 0 refused");
    shop.hangs.add_permits(1);
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    let error = runtime.migrate(&migration, "k-1", "test").await.unwrap_err().to_string();
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
    let migration = Migration::from(&v1()).to(&v3()).build().unwrap();
    let looked = runtime.check_migration(&migration).await.unwrap();
    assert_eq!((looked.moved.len(), status(&runtime, "k-5").await.summary.version), (5, 1), "a look moves nothing");
    let report = runtime.migrate_all(&migration, "test").await.unwrap();
    assert_eq!(report.to_string(), "5 moved, 0 busy, 0 refused");
    assert_eq!(runtime.migrate_all(&migration, "test").await.unwrap().to_string(), "0 moved, 0 busy, 0 refused");
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
    let error = problems(Migration::from(&v1()).to(&v2()).build());
    assert_eq!(
        error,
        "sagas of buy version 1 cannot be moved to buy version 2: buy version 2 has no step `take-stock`; say which one it \
         became with `.step::<take_stock, ..>()`, or leave it out with `.leave_out`"
    );
    let error = problems(Migration::from(&v1()).to(&v1()).build());
    assert!(error.contains("they are one version"), "{error}");
    let sell: Buy = Saga::named("sell").input().version(2).step::<confirm>().build().unwrap();
    let error = problems(Migration::from(&v1()).to(&sell).leave_out::<take_stock>().leave_out::<charge>().build());
    assert!(error.contains("they are two sagas"), "{error}");
    let error = problems(Migration::from(&v1()).to(&v3()).pass::<charge>().leave_out::<call>().build());
    assert!(error.contains("buy version 1 has no step `call`"), "{error}");
    assert!(error.contains("`charge` is in both versions"), "{error}");
    let error = problems(Migration::from(&v2()).to(&v1()).step::<weigh, charge>().leave_out::<reserve_stock>().build());
    assert!(error.contains("`weigh` cannot become `charge`, which is another step of buy version 2"), "{error}");
}
