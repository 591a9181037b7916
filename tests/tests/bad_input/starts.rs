//! Keys and payloads that are refused when a saga is started. Nothing changes, and the same call may be made again.

use saga_core::engine::RuntimeError;
use saga_core::store::SagaFilter;
use saga_core::{Saga, StartError};
use saga_tests::{Fixture, Order, Shop, charge, on_both_stores};

use crate::is_completed;

async fn keys_that_are_none<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    let long = "k".repeat(121);
    for (key, says) in [("", "is empty"), (long.as_str(), "has 121 bytes"), ("a\u{7}b", "byte 1"), ("a b", "byte 1")] {
        let error = runtime.start(&fixture.saga, key, Order::of(1)).await.unwrap_err();
        assert!(matches!(error, StartError::Key(_)) && error.to_string().contains(says), "{error}");
        let error = runtime.status(key).await.unwrap_err();
        assert!(matches!(error, RuntimeError::Key(_)) && error.to_string().contains(says), "{error}");
        assert!(matches!(runtime.attach(key).await, Err(RuntimeError::Key(_))));
        assert!(matches!(runtime.admin().control(key).retry("why not").await, Err(RuntimeError::Key(_))));
    }
    assert!(runtime.admin().query().list(SagaFilter::default()).await.unwrap().is_empty());
    assert!(matches!(runtime.attach("nobody").await, Err(RuntimeError::NoSaga(_))));
}

async fn the_same_key_with_something_else<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let other = Saga::<S, ()>::named("other").input::<Order>().step::<charge>().build().unwrap();
    let runtime = fixture.builder().saga(&other).start().await.unwrap();
    assert!(is_completed(&fixture.run(&runtime, "k").await));
    let (before, calls) = (fixture.status(&runtime, "k").await, fixture.world.calls());

    let error = runtime.start(&fixture.saga, "k", Order::of(2)).await.unwrap_err();
    assert!(matches!(&error, StartError::PayloadMismatch { path, .. } if path == "amount"), "{error}");
    assert!(error.to_string().contains("was started with another payload: `amount` differs"), "{error}");
    let error = runtime.start(&other, "k", Order::of(1)).await.unwrap_err();
    assert!(matches!(&error, StartError::OtherSaga { saga, .. } if saga == "order"), "{error}");
    assert!(error.to_string().contains("keys are unique per tenant, whatever the saga"), "{error}");

    assert_eq!(fixture.status(&runtime, "k").await, before, "nothing has changed");
    assert_eq!(fixture.world.calls(), calls);
    let again = runtime.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
    assert!(again.already_started() && is_completed(&again.outcome().await.unwrap()));
}

async fn an_input_over_the_limit<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.builder().settings(|settings| settings.payload_bytes_max = 1_000).start().await.unwrap();
    let long = Order { note: "n".repeat(1_000), ..Order::of(1) };
    let error = runtime.start(&fixture.saga, "k", long).await.unwrap_err();
    assert!(matches!(error, StartError::TooLarge { bytes: 1_022, max: 1_000 }), "{error}");
    assert!(error.to_string().ends_with("so store it elsewhere and pass a reference"), "{error}");
    assert!(runtime.status("k").await.unwrap().is_none());
    assert!(is_completed(&fixture.run(&runtime, "k").await), "the key is free");
}

async fn a_mapping_of_the_first_step_that_gives_nothing_to_store<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let panics = Saga::<S, ()>::named("panics").input::<Order>();
    let panics = panics.step_from::<charge, _>(|_: &Order| panic!("no such customer")).build().unwrap();
    let long = Saga::<S, ()>::named("long").input::<Order>();
    let long =
        long.step_from::<charge, _>(|_: &Order| Order { note: "n".repeat(2_000), ..Order::of(1) }).build().unwrap();
    let builder = fixture.builder().saga(&panics).saga(&long);
    let runtime = builder.settings(|settings| settings.payload_bytes_max = 1_000).start().await.unwrap();
    for (saga, says) in [(panics, "panicked: no such customer"), (long, "`payload_bytes_max` allows 1000")] {
        let error = runtime.start(&saga, "k", Order::of(1)).await.unwrap_err();
        assert!(matches!(error, StartError::Input(_)) && error.to_string().contains(says), "{error}");
        assert!(runtime.status("k").await.unwrap().is_none());
    }
}

on_both_stores!(
    keys_that_are_none,
    the_same_key_with_something_else,
    an_input_over_the_limit,
    a_mapping_of_the_first_step_that_gives_nothing_to_store,
);
