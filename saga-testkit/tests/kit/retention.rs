//! Retention: ended sagas become tombstones and then are deleted; what may still be acted on is kept (G13).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::engine::{Archive, ArchiveBatch, ArchiveError, RuntimeBuilder, RuntimeError};
use saga_core::memory::{MemoryConn, MemoryStore, MemoryTransport};
use saga_core::store::{Sagas as _, Status};
use saga_core::{
    Key, Outcome, Output, Retention, Runtime, Saga, SagaFailure, Service, StartError, StepError, SubSaga, Tenant,
    saga_compensation, saga_step,
};
use saga_testkit::VirtualTime;

const DAY: Duration = Duration::from_hours(24);
/// The maintenance task looks at least so often.
const PASS: Duration = Duration::from_mins(11);

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "carrier", compensated)]
    pub async fn book_truck(order: u32) -> Result<u32, StepError>;
}

#[saga_step(implements = contracts::book_truck, compensate = cancel_truck)]
async fn book_truck(order: u32) -> Result<u32, StepError> {
    Ok(order)
}

#[saga_compensation]
async fn cancel_truck(_order: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = put_back)]
async fn take_out(tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    tx.add("taken", 1)?;
    Ok(order)
}

#[saga_compensation]
async fn put_back(tx: &mut MemoryConn, _order: u32) -> Result<(), StepError> {
    tx.add("taken", -1)?;
    Ok(())
}

/// Nobody wants order 13, and order 99 needs a person.
#[saga_step(no_compensation)]
async fn approve(order: u32) -> Result<(), StepError> {
    match order {
        13 => Err(StepError::reject("nobody wants it")),
        99 => Err(StepError::stuck("a person has to look at it")),
        _ => Ok(()),
    }
}

struct Shipping;

impl SubSaga for Shipping {
    const NAME: &'static str = "shipping";
    type Input = u32;
    type Output = u32;
}

#[saga_step(no_compensation)]
async fn bill(tx: &mut MemoryConn, _order: u32, Output(_shipped): Output<Shipping>) -> Result<(), StepError> {
    tx.add("billed", 1)?;
    Ok(())
}

fn orders(retention: Option<Retention>) -> Saga<MemoryStore, u32> {
    let saga = Saga::named("order").input();
    let saga = if let Some(retention) = retention { saga.retention(retention) } else { saga };
    saga.step::<take_out>().step::<approve>().build().unwrap()
}

struct Test {
    time: VirtualTime,
    store: MemoryStore,
    saga: Saga<MemoryStore, u32>,
    runtime: Runtime<MemoryStore>,
}

impl Test {
    async fn of(
        saga: Saga<MemoryStore, u32>,
        with: impl FnOnce(RuntimeBuilder<MemoryStore>) -> RuntimeBuilder<MemoryStore>,
    ) -> Self {
        let time = VirtualTime::new();
        let store = MemoryStore::with_environment(time.environment());
        let runtime = Runtime::builder(store.clone()).environment(time.environment()).saga(&saga);
        let runtime = with(runtime).start().await.unwrap();
        Self { time, store, saga, runtime }
    }

    async fn keeping(retention: Retention) -> Self {
        Self::of(orders(Some(retention)), |builder| builder).await
    }

    async fn run(&self, key: &str, order: u32) -> Outcome {
        self.runtime.start(&self.saga, key, order).await.unwrap().outcome().await.unwrap()
    }

    /// Whether the saga is kept in full, as a tombstone, or not at all.
    async fn age(&self, key: &str) -> &'static str {
        let row = self.store.saga(&Tenant::default(), &Key::from_stored(key).unwrap()).await.unwrap();
        match row {
            None => "deleted",
            Some(row) if row.is_tombstone() => "tombstone",
            Some(_) => "full",
        }
    }

    async fn ages(&self, keys: &[&str]) -> Vec<&'static str> {
        let mut ages = Vec::new();
        for key in keys {
            ages.push(self.age(key).await);
        }
        ages
    }
}

#[tokio::test]
async fn an_ended_saga_becomes_a_tombstone_and_then_is_deleted() {
    let test = Test::keeping(Retention::days(30).compensated_days(90).key_days(400)).await;
    test.run("o-1", 1).await;
    test.run("o-13", 13).await;
    drop(test.runtime.start(&test.saga, "o-99", 99).await.unwrap());
    let keys = ["o-1", "o-13", "o-99"];
    test.time.advance(29 * DAY).await;
    assert_eq!(test.ages(&keys).await, ["full", "full", "full"]);
    test.time.advance(DAY + PASS).await;
    assert_eq!(test.ages(&keys).await, ["tombstone", "full", "full"]);
    test.time.advance(60 * DAY).await;
    assert_eq!(test.ages(&keys).await, ["tombstone", "tombstone", "full"]);
    test.time.advance(310 * DAY + PASS).await;
    assert_eq!(test.ages(&keys).await, ["deleted", "deleted", "full"], "a stuck saga never ages");
    assert!(test.time.statistics().calls < 1_000_000, "{:?}", test.time.statistics());
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn a_repeated_start_is_known_while_the_tombstone_is_kept() {
    let test = Test::keeping(Retention::days(1).key_days(10)).await;
    test.run("o-1", 1).await;
    test.time.advance(DAY + PASS).await;
    let again = test.runtime.start(&test.saga, "o-1", 1).await.unwrap();
    assert!(again.already_started());
    assert!(matches!(again.outcome().await.unwrap(), Outcome::Tombstone { status: Status::Completed, .. }));
    let other = test.runtime.start(&test.saga, "o-1", 2).await.unwrap_err();
    assert!(matches!(&other, StartError::PayloadMismatch { .. }), "{other}");
    assert_eq!(test.store.read(|table| table.counter("taken")), 1);

    test.time.advance(9 * DAY + PASS).await;
    let anew = test.runtime.start(&test.saga, "o-1", 2).await.unwrap();
    assert!(!anew.already_started());
    assert!(matches!(anew.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(test.store.read(|table| table.counter("taken")), 2);
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn a_tombstone_says_what_it_is() {
    let test = Test::keeping(Retention::days(1).key_days(10)).await;
    test.run("o-13", 13).await;
    test.time.advance(DAY + PASS).await;
    let status = test.runtime.status("o-13").await.unwrap().unwrap();
    let json = serde_json::to_value(&status).unwrap();
    assert_eq!((&json["status"], &json["outcome"]["kind"]), (&"compensated".into(), &"tombstone".into()));
    assert_eq!((status.steps.len(), status.history.len()), (0, 0));
    assert_eq!(status.summary.outcome.unwrap().to_string(), "compensated, and only its tombstone is kept");
    let failure = test.runtime.attach("o-13").await.unwrap().result().await.unwrap_err();
    assert!(matches!(failure, SagaFailure::Tombstone { status: Status::Compensated }), "{failure}");
    let refused = test.runtime.admin().control("o-13").cancel("try it").await;
    assert!(!format!("{refused:?}").contains("Begun"), "{refused:?}");
    let refused = test.runtime.admin().control("o-13").restart("approve", "o-14", "again").await.unwrap_err();
    assert!(matches!(&refused, RuntimeError::Tombstone { .. }), "{refused}");
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn a_sub_saga_goes_with_its_outer_saga() {
    let shipping = Saga::named("shipping").input::<u32>().retention(Retention::days(1)).step::<take_out>();
    let shipping = shipping.returns::<take_out>().build().unwrap();
    let saga = Saga::named("order").input().retention(Retention::days(2).key_days(3));
    let saga = saga.sub_saga::<Shipping>(&shipping).step::<bill>().build().unwrap();
    let test = Test::of(saga, |builder| builder).await;
    test.run("o-1", 1).await;
    let keys = ["o-1", "o-1>shipping"];
    test.time.advance(DAY + PASS).await;
    assert_eq!(test.ages(&keys).await, ["full", "full"]);
    test.time.advance(DAY).await;
    assert_eq!(test.ages(&keys).await, ["tombstone", "deleted"]);
    test.time.advance(DAY + PASS).await;
    assert_eq!(test.ages(&keys).await, ["deleted", "deleted"]);
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn hosts_learn_that_a_saga_is_closed() {
    let saga = Saga::named("order").input().retention(Retention::days(40).key_days(100));
    let saga = saga.step::<contracts::book_truck>().step::<approve>().build().unwrap();
    let carrier = Service::named("carrier").host::<book_truck>().build().unwrap();
    let transport = MemoryTransport::new();
    let test = Test::of(saga, |builder| {
        builder.transport(transport.clone()).settings(|settings| settings.service = Some("shop".to_owned()))
    })
    .await;
    let hosts_store = MemoryStore::with_environment(test.time.environment());
    let host = Runtime::builder(hosts_store.clone()).environment(test.time.environment()).service(&carrier);
    let host = host.transport(transport).start().await.unwrap();
    let hosted = async |key: &str| {
        let key = Key::from_stored(&format!("{key}>book-truck")).unwrap();
        hosts_store.saga(&Tenant::default(), &key).await.unwrap().is_some()
    };
    test.run("o-1", 1).await;
    test.run("o-13", 13).await;
    drop(test.runtime.start(&test.saga, "o-99", 99).await.unwrap());

    test.time.advance(40 * DAY + PASS).await;
    assert_eq!(test.ages(&["o-1", "o-13", "o-99"]).await, ["tombstone", "tombstone", "full"]);
    assert!(hosted("o-1").await && hosted("o-13").await, "a message may still come");
    test.time.advance(29 * DAY + 2 * PASS).await;
    assert!(!hosted("o-1").await && !hosted("o-13").await);
    assert!(hosted("o-99").await, "its saga is not closed");
    test.runtime.shutdown().await;
    host.shutdown().await;
}

#[tokio::test]
async fn hosts_learn_of_sagas_that_ended_before_their_retention_was_set() {
    let order = |retention: Option<Retention>| {
        let saga = Saga::named("order").input();
        let saga = if let Some(retention) = retention { saga.retention(retention) } else { saga };
        saga.step::<contracts::book_truck>().step::<approve>().build().unwrap()
    };
    let carrier = Service::named("carrier").host::<book_truck>().build().unwrap();
    let transport = MemoryTransport::new();
    let test = Test::of(order(None), |builder| {
        builder.transport(transport.clone()).settings(|settings| settings.service = Some("shop".to_owned()))
    })
    .await;
    let hosts_store = MemoryStore::with_environment(test.time.environment());
    let host = Runtime::builder(hosts_store.clone()).environment(test.time.environment()).service(&carrier);
    let host = host.transport(transport.clone()).start().await.unwrap();
    test.run("o-1", 1).await;
    test.runtime.shutdown().await;

    let saga = order(Some(Retention::days(40).key_days(100)));
    let runtime = Runtime::builder(test.store.clone()).environment(test.time.environment()).saga(&saga);
    let runtime = runtime.transport(transport).settings(|settings| settings.service = Some("shop".to_owned()));
    let test = Test { runtime: runtime.start().await.unwrap(), saga, ..test };
    assert_eq!(test.runtime.admin().retention().apply("order").await.unwrap(), 1);
    test.time.advance(40 * DAY + PASS).await;
    test.time.advance(29 * DAY + 2 * PASS).await;
    assert_eq!(test.age("o-1").await, "tombstone");
    let key = Key::from_stored("o-1>book-truck").unwrap();
    assert!(hosts_store.saga(&Tenant::default(), &key).await.unwrap().is_none(), "the host keeps the step for ever");
    test.runtime.shutdown().await;
    host.shutdown().await;
}

/// Keeps what it gets, in real time, unless something is wrong with it.
#[derive(Clone, Default)]
struct Cellar {
    state: Arc<Mutex<CellarState>>,
    lines: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Copy, Default)]
enum CellarState {
    #[default]
    Open,
    Full,
    OnFire,
}

#[async_trait]
impl Archive for Cellar {
    async fn store(&self, batch: &ArchiveBatch) -> Result<(), ArchiveError> {
        let state = *self.state.lock().unwrap();
        match state {
            // The test's runtime is idle meanwhile.
            CellarState::Open => {
                let work = || (0..3_000_000_u32).fold(0, |sum, number| std::hint::black_box(number) ^ sum);
                _ = tokio::task::spawn_blocking(work).await?;
            }
            CellarState::Full => return Err("the cellar is full".into()),
            CellarState::OnFire => panic!("the cellar is on fire"),
        }
        let lines = String::from_utf8(batch.to_json_lines())?;
        self.lines.lock().unwrap().extend(lines.lines().map(str::to_owned));
        Ok(())
    }
}

#[tokio::test]
async fn what_cannot_be_archived_is_not_purged() {
    let cellar = Cellar::default();
    let saga = orders(Some(Retention::days(1).key_days(2)));
    let test = Test::of(saga, |builder| builder.archive(cellar.clone())).await;
    *cellar.state.lock().unwrap() = CellarState::Full;
    test.run("o-1", 1).await;
    test.run("o-13", 13).await;
    test.time.advance(10 * DAY).await;
    assert_eq!(test.ages(&["o-1", "o-13"]).await, ["full", "full"]);
    *cellar.state.lock().unwrap() = CellarState::OnFire;
    test.time.advance(PASS).await;
    assert_eq!(test.ages(&["o-1", "o-13"]).await, ["full", "full"]);

    // They become tombstones late, and are tombstones for a day. Virtual time stands still while the archive writes.
    *cellar.state.lock().unwrap() = CellarState::Open;
    test.time.advance(PASS).await;
    assert_eq!(test.ages(&["o-1", "o-13"]).await, ["tombstone", "tombstone"]);
    test.time.advance(2 * DAY).await;
    assert_eq!(test.ages(&["o-1", "o-13"]).await, ["deleted", "deleted"]);
    let lines = cellar.lines.lock().unwrap().clone();
    let archived: Vec<serde_json::Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |at: usize| {
        let saga = &archived[at];
        (
            saga["key"].as_str(),
            saga["status"].as_str(),
            saga["input"].as_u64(),
            saga["records"].as_array().map(Vec::len),
        )
    };
    assert_eq!(archived.len(), 2, "{archived:?}");
    assert_eq!(said(0), (Some("o-1"), Some("completed"), Some(1), Some(2)));
    assert_eq!(said(1), (Some("o-13"), Some("compensated"), Some(13), Some(3)));
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn operators_exempt_and_purge_and_apply() {
    let test = Test::of(orders(None), |builder| builder).await;
    for key in ["o-1", "o-2", "o-3"] {
        test.run(key, 1).await;
    }
    let admin = test.runtime.admin().retention();
    let refused = admin.apply("order").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the retention of `order` cannot be applied: it keeps its sagas for ever, as far as is known here"
    );
    test.runtime.shutdown().await;

    // The next version of the program keeps them for a day.
    let saga = orders(Some(Retention::days(1)));
    let runtime = Runtime::builder(test.store.clone()).environment(test.time.environment()).saga(&saga);
    let test = Test { runtime: runtime.start().await.unwrap(), saga, ..test };
    test.time.advance(2 * DAY).await;
    assert_eq!(test.ages(&["o-1", "o-2", "o-3"]).await, ["full", "full", "full"], "they ended without a retention");
    let admin = test.runtime.admin().actor("ann").retention();
    assert_eq!(admin.apply("order").await.unwrap(), 3);
    admin.exempt("o-2", "the auditor wants to see it").await.unwrap();
    assert_eq!(admin.due().await.unwrap().iter().map(|due| due.sagas).collect::<Vec<_>>(), [2]);
    test.time.advance(PASS).await;
    assert_eq!(test.ages(&["o-1", "o-2", "o-3"]).await, ["deleted", "full", "deleted"]);
    let history = test.runtime.status("o-2").await.unwrap().unwrap().history;
    assert_eq!(history.last().unwrap().detail, "exempt by ann: the auditor wants to see it");
    admin.purge("o-2", "the customer asks for it").await.unwrap();
    test.time.advance(PASS).await;
    assert_eq!(test.age("o-2").await, "deleted");

    drop(test.runtime.start(&test.saga, "o-99", 99).await.unwrap());
    test.time.advance(Duration::ZERO).await;
    let refused = admin.purge("o-99", "now").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the saga `o-99` was not changed: it is stuck, and only a saga that has ended ages"
    );
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn a_start_checks_the_horizons() {
    let refusal = async |saga: &Saga<MemoryStore, u32>, change: fn(&mut saga_core::Settings)| {
        let runtime = Runtime::builder(MemoryStore::new()).saga(saga).settings(change);
        runtime.start().await.unwrap_err().to_string()
    };
    let minute = Duration::from_mins(1);
    let saga = orders(Some(Retention::of(minute).key_days(2)));
    let said = refusal(&saga, |_| {}).await;
    assert!(said.contains("keeps completed sagas for 60s, and a late success of one of its steps"), "{said}");
    assert!(said.contains("keep them for at least 150s"), "{said}");

    let saga = orders(Some(Retention::days(1)));
    let said = refusal(&saga, |settings| settings.starts_repeat_within = 2 * DAY).await;
    assert!(said.contains("keep them for at least 172800s with `.key(..)`"), "{said}");

    let saga = Saga::named("order").input().retention(Retention::days(20)).step::<contracts::book_truck>();
    let saga = saga.step::<approve>().build().unwrap();
    let said = refusal(&saga, |settings| settings.service = Some("shop".to_owned())).await;
    assert!(said.contains("a reply to one of its remote steps may arrive after that"), "{said}");
    assert!(said.contains("the hosts of its remote steps keep their records for longer"), "{said}");

    let said = refusal(&orders(None), |settings| settings.events_retention = Some(DAY)).await;
    assert!(said.contains("events_retention is 86400s"), "{said}");
    let said =
        refusal(&orders(None), |settings| settings.default_retention = Some(Retention::days(2).key_days(1))).await;
    assert!(said.contains("default_retention keeps keys for"), "{said}");
}
