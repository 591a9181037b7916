//! Ended sagas age: at the service that has them, and at the hosts of their steps.

use saga_core::engine::RuntimeError;
use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::store::{Sagas as _, Status};
use saga_core::{Key, Outcome, Retention, Runtime, Saga, SagaFailure, Service, StartError, Tenant};

use super::orders::*;

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
