//! What an operator exempts, purges and applies, and which horizons are refused.

use std::time::Duration;

use saga_core::engine::SagaAdmin;
use saga_core::memory::MemoryStore;
use saga_core::{Retention, Runtime, Saga};

use super::orders::*;

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
        "the retention of `order` cannot be applied: it keeps its sagas for ever, as far as is known here; if the runtimes \
         have a `default_retention`, give the admin their settings with `.settings(..)`"
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
async fn g13_operators_purge_no_step_without_its_saga() {
    let shipping = Saga::named("shipping").input::<u32>().step::<take_out>().returns::<take_out>().build().unwrap();
    let saga = Saga::named("order").input().sub_saga::<Shipping>(&shipping).step::<bill>().build().unwrap();
    let test = Test::of(saga, |builder| builder).await;
    test.run("o-1", 1).await;
    let admin = test.runtime.admin().retention();
    let refused = admin.purge("o-1>shipping", "the customer asks for it").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the saga `o-1>shipping` was not changed: it is the step `shipping` of `o-1`, and is kept as long as that saga; \
         name `o-1`"
    );
    admin.exempt("o-1>shipping", "the auditor wants to see it").await.unwrap_err();
    test.time.advance(DAY).await;
    assert_eq!(test.ages(&["o-1", "o-1>shipping"]).await, ["full", "full"]);
    admin.purge("o-1", "the customer asks for it").await.unwrap();
    test.time.advance(DAY).await;
    assert_eq!(test.ages(&["o-1", "o-1>shipping"]).await, ["deleted", "deleted"]);
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn each_version_has_its_own_retention() {
    let version = |version, retention: Option<Retention>| {
        let saga = Saga::named("order").input().version(version);
        let saga = if let Some(retention) = retention { saga.retention(retention) } else { saga };
        saga.step::<take_out>().step::<approve>().build().unwrap()
    };
    let test = Test::of(version(1, None), |builder| builder).await;
    test.run("o-1", 1).await;
    test.runtime.shutdown().await;
    let saga = version(2, None);
    let runtime = Runtime::builder(test.store.clone()).environment(test.time.environment()).saga(&saga);
    let test = Test { runtime: runtime.start().await.unwrap(), saga, ..test };
    test.run("o-2", 2).await;

    let admin = SagaAdmin::new(test.store.clone()).saga(&version(2, Some(Retention::days(1)))).retention();
    assert_eq!(admin.apply("order").await.unwrap(), 1, "version 1 is not known here");
    test.time.advance(2 * DAY).await;
    assert_eq!(test.ages(&["o-1", "o-2"]).await, ["full", "deleted"]);
    let both = SagaAdmin::new(test.store.clone()).saga(&version(1, Some(Retention::days(10)))).saga(&test.saga);
    assert_eq!(both.retention().apply("order").await.unwrap(), 1, "version 2 keeps its sagas for ever");
    test.time.advance(7 * DAY).await;
    assert_eq!(test.age("o-1").await, "full");
    test.time.advance(DAY).await;
    assert_eq!(test.age("o-1").await, "deleted");
    test.runtime.shutdown().await;
}

#[tokio::test]
async fn an_admin_without_a_runtime_knows_the_settings_it_is_given() {
    let keep = |settings: &mut saga_core::Settings| settings.default_retention = Some(Retention::days(2));
    let test = Test::of(orders(None), |builder| builder.settings(keep)).await;
    for key in ["o-1", "o-2"] {
        test.run(key, 1).await;
    }
    drop(test.runtime.start(&test.saga, "o-99", 99).await.unwrap());
    test.time.advance(Duration::ZERO).await;
    let admin = SagaAdmin::new(test.store.clone()).saga(&test.saga).settings(keep);
    assert_eq!(admin.retention().policies()[0].retention, Some(Retention::days(2)));
    admin.retention().exempt("o-2", "the auditor wants to see it").await.unwrap();
    admin.control("o-99").skip("it is approved").await.unwrap();
    test.time.advance(3 * DAY).await;
    let keys = ["o-1", "o-2", "o-99"];
    assert_eq!(test.ages(&keys).await, ["deleted", "full", "deleted"]);
    admin.retention().unexempt("o-2", "the auditor has seen it").await.unwrap();
    test.time.advance(PASS).await;
    assert_eq!(test.age("o-2").await, "deleted");
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
    assert!(said.contains("keeps completed sagas for 1 min, and a late success of one of its steps"), "{said}");
    assert!(said.contains("keep them for at least 2 min 30 s"), "{said}");

    let saga = orders(Some(Retention::days(1)));
    let said = refusal(&saga, |settings| settings.starts_repeat_within = 2 * DAY).await;
    assert!(said.contains("keep them for at least 2 days with `.key(..)`"), "{said}");

    let saga = Saga::named("order").input().retention(Retention::days(20)).step::<contracts::book_truck>();
    let saga = saga.step::<approve>().build().unwrap();
    let said = refusal(&saga, |settings| settings.service = Some("shop".to_owned())).await;
    assert!(said.contains("a reply to one of its remote steps may arrive after that"), "{said}");
    assert!(said.contains("the hosts of its remote steps keep their records for longer"), "{said}");

    let said = refusal(&orders(None), |settings| settings.events_retention = Some(DAY)).await;
    assert!(said.contains("events_retention is 1 day"), "{said}");
    let said =
        refusal(&orders(None), |settings| settings.default_retention = Some(Retention::days(2).key_days(1))).await;
    assert!(said.contains("default_retention keeps keys for"), "{said}");
}
