//! Outputs that cannot be stored, or not be read again, and mappings that give nothing.

use std::collections::BTreeMap;

use saga_core::{Output, Runtime, Saga, StepContext, StepError, saga_compensation, saga_step};
use saga_tests::{Fixture, Order, Shop, charge, eventually, on_both_stores, quick};

use crate::{is_completed, retry, stuck};

/// A map whose keys are no strings: JSON has no form for it.
type Grid = BTreeMap<(i64, i64), i64>;

#[saga_step(no_compensation)]
async fn draw<S: Shop>(conn: &mut S::Conn, order: Order) -> Result<Grid, StepError> {
    S::add(conn, "drawn", 1)?;
    Ok(if order.amount > 0 { Grid::from([((1, 2), 3)]) } else { Grid::new() })
}

#[saga_step(compensate = unprint, timeout = "300ms")]
async fn print(_ctx: &StepContext, _order: Order) -> Result<Grid, StepError> {
    Ok(Grid::from([((1, 2), 3)]))
}

#[saga_compensation]
async fn unprint<S: Shop>(conn: &mut S::Conn, _order: Order, printed: Option<Grid>) -> Result<(), StepError> {
    assert_eq!(printed, None);
    S::add(conn, "unprinted", 1)?;
    Ok(())
}

/// In a transaction nothing of it is kept, and a person is called; they go past it here, since its code is what it is.
async fn an_output_that_has_no_stored_form<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let named = |name: &str| Saga::<S, ()>::named(name).input::<Order>();
    let transaction = named("transaction").step::<draw>().build().unwrap();
    let call = named("call").step::<print>().build().unwrap();
    let runtime = fixture.builder().saga(&transaction).saga(&call).start().await.unwrap();

    let outcome = runtime.start(&transaction, "t", Order::of(1)).await.unwrap().outcome().await.unwrap();
    let (step, reason) = stuck(&outcome);
    assert_eq!(step, "draw");
    assert!(reason.starts_with("its output cannot be stored: ") && reason.contains("key must be a string"), "{reason}");
    assert_eq!(fixture.store.total("drawn").await, 0);
    let seen = runtime.status("t").await.unwrap().unwrap();
    runtime
        .admin()
        .control("t")
        .at_revision(seen.revision)
        .skip_with(&Grid::new(), "an empty one will do")
        .await
        .unwrap();
    assert!(is_completed(&runtime.attach("t").await.unwrap().outcome().await.unwrap()));

    let outcome = runtime.start(&call, "c", Order::of(1)).await.unwrap().outcome().await.unwrap();
    let (step, reason) = stuck(&outcome);
    assert!(step == "print" && reason.starts_with("its output cannot be stored: "), "{reason}");
    assert_eq!(fixture.store.total("unprinted").await, 0, "only an operator undoes it");
}

#[saga_step(no_compensation)]
async fn write_long<S: Shop>(conn: &mut S::Conn, order: Order) -> Result<String, StepError> {
    S::add(conn, "long", 1)?;
    Ok("x".repeat(usize::try_from(order.amount)?))
}

#[saga_step(compensate = unfetch, timeout = "300ms")]
async fn fetch_long(_ctx: &StepContext, order: Order) -> Result<String, StepError> {
    Ok("x".repeat(usize::try_from(order.amount)?))
}

#[saga_compensation]
async fn unfetch<S: Shop>(conn: &mut S::Conn, _order: Order) -> Result<(), StepError> {
    S::add(conn, "unfetched", 1)?;
    Ok(())
}

/// With a longer limit the stuck saga goes on.
async fn an_output_over_the_limit<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let named = |name: &str| Saga::<S, ()>::named(name).input::<Order>();
    let transaction = named("transaction").step::<write_long>().build().unwrap();
    let call = named("call").step::<fetch_long>().build().unwrap();
    let builder = || fixture.builder().saga(&transaction).saga(&call);
    let runtime = builder().settings(|settings| settings.payload_bytes_max = 1_000).start().await.unwrap();

    let outcome = runtime.start(&transaction, "t", Order::of(999)).await.unwrap().outcome().await.unwrap();
    let (step, reason) = stuck(&outcome);
    assert_eq!(step, "write-long");
    let says = "its output cannot be stored: it has 1001 bytes; `payload_bytes_max` allows 1000, so store it elsewhere";
    assert!(reason.starts_with(says), "{reason}");
    assert_eq!(fixture.store.total("long").await, 0);
    let outcome = runtime.start(&call, "c", Order::of(999)).await.unwrap().outcome().await.unwrap();
    assert!(stuck(&outcome).1.starts_with(says), "{outcome}");
    assert_eq!(fixture.store.total("unfetched").await, 0, "only an operator undoes it");
    runtime.shutdown().await;

    let runtime = builder().start().await.unwrap();
    assert!(is_completed(&retry(&runtime, "t").await) && is_completed(&retry(&runtime, "c").await));
    assert_eq!(fixture.store.total("long").await, 1);
}

#[saga_step(no_compensation)]
async fn measure(_ctx: &StepContext, _order: Order) -> Result<f64, StepError> {
    Ok(f64::NAN)
}

#[saga_step]
async fn use_measure<S: Shop>(
    conn: &mut S::Conn,
    _order: Order,
    Output(_measured): Output<measure>,
) -> Result<(), StepError> {
    S::add(conn, "used", 1)?;
    Ok(())
}

/// JSON writes `NaN` as `null`, which is no number any more: whoever takes it needs a person, and nothing is rejected.
async fn an_output_that_cannot_be_read_again<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let saga = Saga::<S, ()>::named("measure").input::<Order>().step::<measure>().step::<use_measure>();
    let saga = saga.build().unwrap();
    let runtime = fixture.builder().saga(&saga).start().await.unwrap();
    let outcome = runtime.start(&saga, "k", Order::of(1)).await.unwrap().outcome().await.unwrap();
    let (step, reason) = stuck(&outcome);
    assert_eq!(step, "use-measure");
    assert!(reason.starts_with("the recorded output of the step `measure` cannot be read: `f64`"), "{reason}");
    assert_eq!(fixture.store.total("used").await, 0);
    let seen = runtime.status("k").await.unwrap().unwrap();
    runtime.admin().control("k").at_revision(seen.revision).skip("entered by hand").await.unwrap();
    assert!(is_completed(&runtime.attach("k").await.unwrap().outcome().await.unwrap()));
}

fn mapped<S: Shop>(works: bool) -> Saga<S, Order> {
    let saga = Saga::named("mapped").input::<Order>().step::<charge>();
    let saga = saga.step_from::<write_long, _>(move |order: &Order, _: Output<charge>| {
        assert!(works, "no such customer");
        order.clone()
    });
    saga.build().unwrap()
}

/// A mapping that panics concerns its own saga, which goes on with a definition in which it does not.
async fn a_mapping_that_panics<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let broken = mapped::<S>(false);
    let runtime = fixture.builder().saga(&broken).start().await.unwrap();
    let outcome = runtime.start(&broken, "k", Order::of(1)).await.unwrap().outcome().await.unwrap();
    let (step, reason) = stuck(&outcome);
    assert_eq!(step, "write-long");
    let says = "its input cannot be made: the mapping of its input panicked: no such customer";
    assert_eq!(reason, says);
    let outcome = retry(&runtime, "k").await;
    assert_eq!(stuck(&outcome), ("write-long", says), "it is as broken as before");
    runtime.shutdown().await;

    let repaired = mapped::<S>(true);
    let builder = Runtime::builder(fixture.store.clone()).saga(&repaired).state(fixture.world.clone());
    let runtime = builder.settings(quick).start().await.unwrap();
    assert!(is_completed(&retry(&runtime, "k").await));
    assert_eq!((fixture.store.total("long").await, fixture.world.calls_of("k:charge")), (1, 1));
}

/// A value whose own code panics when it is written or read.
#[derive(Debug, Clone)]
struct Touchy(i64);

impl serde::Serialize for Touchy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert_ne!(self.0, 13, "an unlucky number");
        serializer.serialize_i64(self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Touchy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde::Deserialize::deserialize(deserializer)?;
        assert_ne!(number, 7, "a lucky number");
        Ok(Self(number))
    }
}

#[saga_step]
async fn count<S: Shop>(conn: &mut S::Conn, touchy: Touchy) -> Result<Touchy, StepError> {
    S::add(conn, "counted", touchy.0)?;
    Ok(touchy)
}

/// Where a value's own code panics, its saga is stuck or retried, and the others go on.
async fn a_value_that_panics<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let saga = Saga::<S, ()>::named("touchy").input::<Order>().step::<charge>();
    let saga = saga.step_from::<count, _>(|order: &Order, _: Output<charge>| Touchy(order.amount)).build().unwrap();
    let runtime = fixture.builder().saga(&saga).start().await.unwrap();
    let outcome = runtime.start(&saga, "written", Order::of(13)).await.unwrap().outcome().await.unwrap();
    let (step, reason) = stuck(&outcome);
    assert!(step == "count" && reason.contains("panicked: ") && reason.contains("an unlucky number"), "{reason}");
    runtime.start(&saga, "read", Order::of(7)).await.unwrap();
    let error = eventually("its error", async || {
        let status = runtime.status("read").await.unwrap().unwrap();
        status.steps.iter().find(|step| step.step == "count").and_then(|step| step.error.clone())
    })
    .await;
    assert!(error.contains("panicked: ") && error.contains("a lucky number"), "{error}");
    assert!(is_completed(&runtime.start(&saga, "k", Order::of(1)).await.unwrap().outcome().await.unwrap()));
    assert_eq!(fixture.store.total("counted").await, 1);
}

on_both_stores!(
    a_value_that_panics,
    an_output_that_has_no_stored_form,
    an_output_over_the_limit,
    an_output_that_cannot_be_read_again,
    a_mapping_that_panics,
);
