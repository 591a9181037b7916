//! G12: tenants.

use saga_core::key::Namespace;
use saga_core::store::SagaFilter;
use saga_core::{Settings, StartError, Tenant};
use saga_tests::{Act, Fixture, Mail, Order, Shop, eventually, on_both_stores};

use crate::guarantees::{is_compensated, is_completed};

/// G12: Tenants never meet: no row, key, message, setting or answer crosses.
async fn g12_the_same_key_of_two_tenants_is_two_sagas<S: Shop>() {
    one_key_of_three_tenants::<S>(|_| ()).await;
}

/// G12: The same, where one transaction may carry their steps.
async fn g12_tenants_that_share_commits_do_not_meet<S: Shop>() {
    let share = |settings: &mut Settings| (settings.tenants_share_commits, settings.transactions_max) = (true, 1);
    one_key_of_three_tenants::<S>(share).await;
}

async fn one_key_of_three_tenants<S: Shop>(change: fn(&mut Settings)) {
    let fixture = Fixture::<S>::new().await;
    let mail = Mail::new();
    let runtime = fixture.builder().transport(mail.clone()).settings(change).start().await.unwrap();
    let [acme, blue] = ["acme", "blue"].map(|name| runtime.tenant(Tenant::new(name).unwrap()));
    fixture.world.plan("/blue/k:ship", [Act::Reject]);
    let default = runtime.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
    let of_acme = acme.start(&fixture.saga, "k", Order::of(2)).await.unwrap();
    let of_blue = blue.start(&fixture.saga, "k", Order::of(4)).await.unwrap();
    assert!(!default.already_started() && !of_acme.already_started() && !of_blue.already_started());
    assert!(is_completed(&default.outcome().await.unwrap()));
    assert!(is_completed(&of_acme.outcome().await.unwrap()));
    assert!(is_compensated(&of_blue.outcome().await.unwrap()));
    assert_eq!(fixture.store.total("booked").await, 3);

    // Outside services tell them apart.
    assert_eq!(fixture.world.standing("k:charge"), 1);
    assert_eq!(fixture.world.standing("/acme/k:charge"), 2);
    assert_eq!(fixture.world.standing("/blue/k:charge"), 0);
    assert_eq!(fixture.world.calls_of("/blue/k:charge:undo"), 1);

    // Each sees its own, and nothing else.
    for (tenant, name, count) in [(&runtime, "", 1), (&acme, "acme", 1), (&blue, "blue", 1)] {
        let list = tenant
            .admin()
            .query()
            .list(SagaFilter { tenant: Tenant::new("acme").unwrap(), ..SagaFilter::default() })
            .await
            .unwrap();
        assert_eq!(list.len(), count);
        assert!(list.iter().all(|saga| saga.tenant.as_str() == name), "a filter does not reach over");
        assert_eq!(tenant.admin().query().count().await.unwrap().values().sum::<u64>(), 1);
    }
    let another = runtime.tenant(Tenant::new("another").unwrap());
    assert!(another.status("k").await.unwrap().is_none());
    assert!(another.attach("k").await.is_err());

    // A message says whose it is.
    eventually("every message", async || (mail.accepted().len() >= 6).then_some(())).await;
    for message in mail.accepted() {
        let by = serde_json::from_slice::<saga_tests::Booked>(&message.payload).unwrap().by;
        let tenant = by.strip_prefix('/').and_then(|rest| rest.split_once('/')).map_or("", |(tenant, _)| tenant);
        assert_eq!(message.tenant.as_str(), tenant, "{by}");
    }
}

/// G12: an operator of one tenant does not reach the saga of another, and a payload is compared with its own only.
async fn g12_no_action_and_no_answer_crosses<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    let [acme, blue] = ["acme", "blue"].map(|name| runtime.tenant(Tenant::new(name).unwrap()));
    fixture.world.always("/acme/k:ship", Act::Panic);
    acme.start(&fixture.saga, "k", Order::of(1)).await.unwrap().outcome().await.unwrap();
    blue.start(&fixture.saga, "k", Order::of(2)).await.unwrap().outcome().await.unwrap();
    let seen = acme.status("k").await.unwrap().unwrap();
    for revision in [seen.revision, blue.status("k").await.unwrap().unwrap().revision] {
        assert!(blue.admin().control("k").at_revision(revision).force_compensated("wrong door").await.is_err());
        assert!(runtime.admin().control("k").at_revision(revision).force_compensated("wrong door").await.is_err());
    }
    assert_eq!(acme.status("k").await.unwrap().unwrap(), seen);
    assert!(matches!(blue.start(&fixture.saga, "k", Order::of(1)).await, Err(StartError::PayloadMismatch { .. })));
    assert!(acme.start(&fixture.saga, "k", Order::of(1)).await.unwrap().already_started());
}

/// G12: with a namespace, the keys of two services or environments on one account differ as well.
async fn g12_a_namespace_stands_in_front_of_every_outside_key<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let namespace = |settings: &mut Settings| settings.namespace = Some(Namespace::new("shop").unwrap());
    let runtime = fixture.builder().settings(namespace).start().await.unwrap();
    let acme = runtime.tenant(Tenant::new("acme").unwrap());
    assert!(is_completed(&fixture.run(&runtime, "k").await));
    assert!(is_completed(&fixture.run(&acme, "k").await));
    assert_eq!(fixture.world.standing("shop/k:charge"), 1);
    assert_eq!(fixture.world.standing("shop/acme/k:charge"), 1);
}

on_both_stores!(
    g12_the_same_key_of_two_tenants_is_two_sagas,
    g12_tenants_that_share_commits_do_not_meet,
    g12_no_action_and_no_answer_crosses,
    g12_a_namespace_stands_in_front_of_every_outside_key,
);
