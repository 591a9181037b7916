//! Types that changed under one version, on every store: the runtime says so when it starts, before a saga gets stuck.

use saga_core::engine::{BuildError, RuntimeBuilder, SignalOutcome, UnreadableValues};
use saga_core::store::Status;
use saga_core::{Outcome, Runtime, Saga, StepPhase};
use saga_tests::{Books, Warnings, eventually};

/// The program that started the sagas.
mod before {
    use saga_core::{Saga, Signal, StepError, Wait, saga_compensation, saga_step};
    use saga_tests::Books;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub(crate) struct Order {
        pub(crate) pieces: u32,
    }

    #[derive(Serialize, Deserialize)]
    pub(crate) struct Approval(pub(crate) String);

    impl Signal for Approval {
        const NAME: &'static str = "approval";
    }

    #[saga_step(compensate = refund_card)]
    pub(crate) async fn charge_card(order: Order) -> Result<u32, StepError> {
        Ok(order.pieces * 100)
    }

    #[saga_compensation]
    pub(crate) async fn refund_card(_order: Order, _cents: u32) -> Result<(), StepError> {
        Ok(())
    }

    #[saga_step(compensate = unpack)]
    pub(crate) async fn pack(grams: u32) -> Result<u32, StepError> {
        Ok(grams)
    }

    #[saga_compensation]
    pub(crate) async fn unpack(_grams: u32) -> Result<(), StepError> {
        Ok(())
    }

    #[saga_step(no_compensation)]
    pub(crate) async fn label(piece: u32) -> Result<u32, StepError> {
        Ok(piece)
    }

    /// The carrier never answers.
    #[saga_step(no_compensation, retry(base = "1h", cap = "1h"))]
    pub(crate) async fn ship(_grams: u32) -> Result<(), StepError> {
        Err(StepError::not_sent("the carrier does not answer"))
    }

    pub(crate) fn order<S: Books>() -> Saga<S, Order> {
        Saga::named("order")
            .input::<Order>()
            .step::<charge_card>()
            .step_from::<pack, _>(|order: &Order| order.pieces * 20)
            .for_each::<label, _>(2, |order: &Order| (0..order.pieces).collect())
            .wait_for::<Approval>(Wait::without_limit())
            .step_from::<ship, _>(|order: &Order| order.pieces * 20)
            .build()
            .unwrap()
    }
}

/// The program of the next day: each type changed, and no version.
mod after {
    use saga_core::{Saga, Signal, StepError, Wait, saga_compensation, saga_step};
    use saga_tests::Books;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub(crate) struct Order {
        pub(crate) pieces: u32,
        pub(crate) city: String,
    }

    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub(crate) struct Weight {
        pub(crate) grams: u32,
    }

    #[derive(Serialize, Deserialize)]
    pub(crate) struct Approval {
        pub(crate) by: String,
    }

    impl Signal for Approval {
        const NAME: &'static str = "approval";
    }

    #[saga_step(compensate = refund_card)]
    pub(crate) async fn charge_card(_order: Order) -> Result<String, StepError> {
        Ok("payment 7".to_owned())
    }

    #[saga_compensation]
    pub(crate) async fn refund_card(_order: Order, _payment: String) -> Result<(), StepError> {
        Ok(())
    }

    #[saga_step(compensate = unpack)]
    pub(crate) async fn pack(weight: Weight) -> Result<u32, StepError> {
        Ok(weight.grams)
    }

    #[saga_compensation]
    pub(crate) async fn unpack(_weight: Weight) -> Result<(), StepError> {
        Ok(())
    }

    #[saga_step(no_compensation)]
    pub(crate) async fn label(piece: String) -> Result<String, StepError> {
        Ok(piece)
    }

    #[saga_step(no_compensation, retry(base = "1h", cap = "1h"))]
    pub(crate) async fn ship(_weight: Weight) -> Result<(), StepError> {
        Err(StepError::not_sent("the carrier does not answer"))
    }

    pub(crate) fn order<S: Books>() -> Saga<S, Order> {
        let weight = |order: &Order| Weight { grams: order.pieces * 20 };
        Saga::named("order")
            .input::<Order>()
            .step::<charge_card>()
            .step_from::<pack, _>(weight)
            .for_each::<label, _>(2, |order: &Order| (0..order.pieces).map(|piece| piece.to_string()).collect())
            .wait_for::<Approval>(Wait::without_limit())
            .step_from::<ship, _>(weight)
            .build()
            .unwrap()
    }
}

/// Types that also read what the first program stored.
mod compatible {
    use saga_core::saga::SagaBuilder;
    use saga_core::{Saga, StepError, saga_step};
    use saga_tests::Books;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub(crate) struct Booking {
        pub(crate) seats: u32,
    }

    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub(crate) struct LaterBooking {
        pub(crate) seats: u64,
        pub(crate) meal: Option<String>,
        #[serde(default)]
        pub(crate) bags: u32,
    }

    #[saga_step(no_compensation, name = "reserve-seats", retry(base = "1h", cap = "1h"))]
    pub(crate) async fn reserve_seats(_booking: Booking) -> Result<(), StepError> {
        Err(StepError::not_sent("the airline does not answer"))
    }

    #[saga_step(no_compensation, name = "reserve-seats")]
    pub(crate) async fn reserve_places(_booking: LaterBooking) -> Result<(), StepError> {
        Ok(())
    }

    pub(crate) fn named<S: Books, I: saga_core::step::Payload>() -> SagaBuilder<S, I> {
        Saga::named("booking").input::<I>()
    }
}

fn builder<S: Books, I>(store: &S, saga: &Saga<S, I>) -> RuntimeBuilder<S> {
    Runtime::builder(store.clone()).saga(saga)
}

async fn phase<S: Books>(runtime: &Runtime<S>, key: &str, step: &str) -> StepPhase {
    let status = runtime.status(key).await.unwrap().unwrap();
    status.steps.iter().find(|other| other.step == step).unwrap().phase
}

/// A store where the first program left so many sagas in the middle, and one each that ended and that is stuck.
async fn left_behind<S: Books>(count: usize) -> (S, saga_tests::Kept) {
    let (store, kept) = S::fresh().await;
    let order = before::order();
    let runtime = builder(&store, &order).start().await.unwrap();
    for number in 0..count {
        let key = format!("order-{number}");
        runtime.start(&order, &key, before::Order { pieces: 2 }).await.unwrap();
        let sent = runtime.signal(&key, "approval-1", &before::Approval("Ada".to_owned())).await.unwrap();
        assert!(matches!(sent, SignalOutcome::Delivered | SignalOutcome::Buffered), "{sent:?}");
        eventually("the carrier is asked", async || {
            (phase(&runtime, &key, "ship").await == StepPhase::Started).then_some(())
        })
        .await;
    }
    let ended = runtime.start(&order, "ended", before::Order { pieces: 1 }).await.unwrap();
    runtime.cancel("ended", "it was a test").await.unwrap();
    assert!(matches!(ended.outcome().await.unwrap(), Outcome::Compensated { .. }));
    runtime.shutdown().await;
    (store, kept)
}

async fn refusal<S: Books, I>(builder: RuntimeBuilder<S>, _saga: &Saga<S, I>) -> (Vec<UnreadableValues>, String) {
    let error = builder.start().await.unwrap_err();
    let text = error.to_string();
    let BuildError::Unreadable(unreadable) = error else { panic!("{text}") };
    (unreadable, text)
}

async fn types_that_changed_are_found_before_anything_runs<S: Books>() {
    let (store, _kept) = left_behind::<S>(3).await;
    let order = after::order();
    let (unreadable, text) = refusal(builder(&store, &order), &order).await;
    let found: Vec<_> = unreadable.iter().map(|values| (values.step.as_deref(), values.value)).collect();
    let expected = [
        (None, "input"),
        (Some("approval"), "signal"),
        (Some("charge-card"), "output"),
        (Some("label"), "input"),
        (Some("label"), "output"),
        (Some("pack"), "input"),
        (Some("ship"), "input"),
    ];
    assert_eq!(found, expected, "{text}");
    for values in &unreadable {
        assert_eq!((values.saga.as_str(), values.version, values.sagas, values.sampled), ("order", 1, 3, 3), "{text}");
        assert!(values.key.as_str().starts_with("order-"), "{text}");
    }
    let input = "3 of 3 unfinished sagas of order version 1 have an input that cannot be read, such as `order-0`: \
                 `stores::changed_types::after::Order`: missing field `city` at line 1 column 12";
    assert_eq!(unreadable[0].to_string(), input);
    assert!(
        text.contains("have an output of the step `charge-card` that cannot be read, such as `order-0`: "),
        "{text}"
    );
    assert!(text.contains("column 3: an integer, where a string is expected"), "{text}");
    assert!(text.contains("give the changed definition a new version"), "{text}");
    assert!(!text.contains("Ada"), "payloads are not printed: {text}");

    // Nothing ran, and the first program goes on.
    let order = before::order();
    let runtime = builder(&store, &order).start().await.unwrap();
    let status = runtime.status("order-0").await.unwrap().unwrap();
    assert_eq!(status.summary.status, Status::Running);
    runtime.shutdown().await;
}

async fn a_sample_of_many_sagas_is_enough<S: Books>() {
    let (store, _kept) = left_behind::<S>(5).await;
    let order = after::order();
    let sampling = |sagas| builder(&store, &order).settings(move |settings| settings.sampled_sagas_max = sagas);
    let (unreadable, text) = refusal(sampling(2), &order).await;
    assert!(unreadable.iter().all(|values| (values.sagas, values.sampled) == (2, 2)), "{text}");
    // Nothing is read.
    let runtime = sampling(0).start().await.unwrap();
    runtime.shutdown().await;
}

async fn an_operator_can_start_anyway_and_those_sagas_get_stuck<S: Books>() {
    let (store, _kept) = left_behind::<S>(1).await;
    let order = after::order();
    let warnings = Warnings::default();
    let anyway = builder(&store, &order).settings(|settings| settings.start_with_unreadable_sagas = true);
    let runtime = {
        let _guard = tracing::subscriber::set_default(warnings.clone());
        anyway.start().await.unwrap()
    };
    let warned = warnings.of("stored values unreadable");
    assert_eq!(warned.len(), 7, "{warned:?}");
    assert!(warned.iter().any(|text| text.contains("step=\"charge-card\"") && text.contains("count=1")), "{warned:?}");

    runtime.cancel("order-0", "the customer does not want it any more").await.unwrap();
    eventually("the saga is stuck", async || {
        let status = runtime.status("order-0").await.unwrap().unwrap();
        (status.summary.status == Status::Stuck).then_some(())
    })
    .await;
    runtime.shutdown().await;

    // Stuck sagas are not read: an operator looks after this one already.
    let runtime = builder(&store, &order).start().await.unwrap();
    runtime.shutdown().await;
}

async fn types_that_read_the_old_form_are_no_change<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let booking = compatible::named().step::<compatible::reserve_seats>().build().unwrap();
    let runtime = builder(&store, &booking).start().await.unwrap();
    runtime.start(&booking, "b-1", compatible::Booking { seats: 2 }).await.unwrap();
    // It is tried again in an hour, and not by the next process at once.
    eventually("the airline is asked", async || {
        let status = runtime.status("b-1").await.unwrap().unwrap();
        (status.steps[0].attempts > 0).then_some(())
    })
    .await;
    runtime.shutdown().await;

    let booking = compatible::named().step::<compatible::reserve_places>().build().unwrap();
    let runtime = builder(&store, &booking).start().await.unwrap();
    runtime.admin().control("b-1").retry_now("the airline answers again").await.unwrap();
    let outcome = runtime.attach("b-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    runtime.shutdown().await;
}

saga_tests::on_every_store! {
    types_that_changed_are_found_before_anything_runs,
    a_sample_of_many_sagas_is_enough,
    an_operator_can_start_anyway_and_those_sagas_get_stuck,
    types_that_read_the_old_form_are_no_change,
}
