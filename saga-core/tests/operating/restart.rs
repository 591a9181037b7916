//! A saga that is started instead of one that has ended: what it takes over, and what it cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use saga_core::StepPhase;
use saga_core::engine::RestartOutcome;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::store::{Advance, Changes, Records as _, Sagas as _, Status};
use saga_core::{Key, Outcome, Outputs, Runtime, Saga, State, StepError, Tenant, saga_compensation, saga_step};

const WHY: &str = "the test says so";

/// Whether the last step is refused.
#[derive(Clone, Default)]
struct Refuses(Arc<AtomicBool>);

#[saga_step(compensate = unpack)]
async fn pack(tx: &mut MemoryConn, parcel: u32) -> Result<String, StepError> {
    tx.log(format!("pack {parcel}"));
    Ok(format!("box {parcel}"))
}

#[saga_compensation]
async fn unpack(tx: &mut MemoryConn, parcel: u32, _packed: String) -> Result<(), StepError> {
    tx.log(format!("unpack {parcel}"));
    Ok(())
}

#[saga_step(no_compensation)]
async fn call_courier(tx: &mut MemoryConn, _parcels: u32) -> Result<(), StepError> {
    tx.log("courier");
    Ok(())
}

#[saga_step(no_compensation)]
async fn bill(
    tx: &mut MemoryConn,
    _parcels: u32,
    Outputs(packed): Outputs<pack>,
    State(refuses): State<Refuses>,
) -> Result<(), StepError> {
    if refuses.0.load(Ordering::Relaxed) {
        return Err(StepError::reject("nobody pays for it"));
    }
    tx.log(format!("bill {}", packed.join(", ")));
    Ok(())
}

/// Each parcel is packed, the courier comes for more than one of them, and all are billed.
fn parcels() -> Saga<MemoryStore, u32> {
    let saga = Saga::named("parcels").input::<u32>();
    let saga = saga.for_each::<pack, _>(2, |parcels: &u32| (1..=*parcels).collect::<Vec<_>>());
    let saga = saga
        .choose("courier", |choice| choice.when("comes", |parcels: &u32| *parcels > 1, Branch::step::<call_courier>));
    saga.step::<bill>().build().unwrap()
}

async fn start(store: &MemoryStore, refuses: &Refuses) -> Runtime<MemoryStore> {
    Runtime::builder(store.clone()).saga(&parcels()).state(refuses.clone()).start().await.unwrap()
}

async fn ended(runtime: &Runtime<MemoryStore>, key: &str) -> Outcome {
    runtime.attach(key).await.unwrap().closed().await.unwrap()
}

fn log(store: &MemoryStore) -> Vec<String> {
    store.read(|table| table.log().iter().map(|entry| String::from_utf8(entry.clone()).unwrap()).collect())
}

/// G5: an effect that was undone does not stand, and that of an item is one.
#[tokio::test]
async fn g5_a_list_whose_items_were_undone_is_not_taken_over() {
    let (store, refuses) = (MemoryStore::new(), Refuses::default());
    let runtime = start(&store, &refuses).await;
    refuses.0.store(true, Ordering::Relaxed);
    runtime.start(&parcels(), "k", 2).await.unwrap();
    assert!(matches!(ended(&runtime, "k").await, Outcome::Compensated { .. }));
    let problem = runtime.admin().control("k").restart("bill", "k-again", WHY).await.unwrap_err().to_string();
    assert!(problem.contains("its step `pack` was undone, so that nothing of it can be taken over"), "{problem}");
    refuses.0.store(false, Ordering::Relaxed);
    assert_eq!(runtime.admin().control("k").restart("pack", "k-again", WHY).await.unwrap(), RestartOutcome::Begun);
    assert!(matches!(ended(&runtime, "k-again").await, Outcome::Completed { .. }));
    assert_eq!(log(&store).iter().filter(|line| line.starts_with("pack ")).count(), 4);
    runtime.shutdown().await;
}

/// What the new saga decides in the commit in which it begins is its own.
#[tokio::test]
async fn a_choice_that_is_begun_with_is_made_anew() {
    let (store, refuses) = (MemoryStore::new(), Refuses::default());
    let runtime = start(&store, &refuses).await;
    runtime.start(&parcels(), "k", 2).await.unwrap();
    assert!(matches!(ended(&runtime, "k").await, Outcome::Completed { .. }));
    runtime.admin().control("k").restart("courier", "again", WHY).await.unwrap();
    assert!(matches!(ended(&runtime, "again").await, Outcome::Completed { .. }));
    let status = runtime.status("again").await.unwrap().unwrap();
    let courier = status.steps.iter().find(|step| step.step == "courier").unwrap();
    assert_eq!((courier.taken.as_deref(), courier.phase), (Some("comes"), StepPhase::Done));
    assert_eq!(courier.error, None, "nobody else has made it");
    let pack = status.steps.iter().find(|step| step.step == "pack").unwrap();
    assert_eq!(pack.error.as_deref(), Some("taken over from the saga `k`"));
    // So it is taken over in its turn.
    runtime.admin().control("again").restart("bill", "third", WHY).await.unwrap();
    assert!(matches!(ended(&runtime, "third").await, Outcome::Completed { .. }));
    assert_eq!(
        log(&store).split_off(2),
        ["courier", "bill box 1, box 2", "courier", "bill box 1, box 2", "bill box 1, box 2"]
    );
    runtime.shutdown().await;
}

#[saga_step(compensate = unreserve)]
async fn reserve(tx: &mut MemoryConn, _parcels: u32) -> Result<(), StepError> {
    tx.log("reserve");
    Ok(())
}

#[saga_compensation]
async fn unreserve(_tx: &mut MemoryConn, _parcels: u32, _reserved: ()) -> Result<(), StepError> {
    Err(StepError::reject("the shelf is locked"))
}

#[saga_step(compensate = refund)]
async fn charge(_parcels: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_compensation(retry(attempts = 1))]
async fn refund(_parcels: u32, _charged: ()) -> Result<(), StepError> {
    Err(StepError::retry("no answer"))
}

#[saga_step]
async fn ship(_tx: &mut MemoryConn, _parcels: u32, State(refuses): State<Refuses>) -> Result<(), StepError> {
    if refuses.0.load(Ordering::Relaxed) { Err(StepError::reject("no van")) } else { Ok(()) }
}

/// A saga of that step and `ship` that was refused, and of which a person skipped the undo.
async fn skipped(runtime: &Runtime<MemoryStore>, saga: &Saga<MemoryStore, u32>) {
    let running = runtime.start(saga, saga.name(), 1).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Stuck { .. }));
    let revision = runtime.status(saga.name()).await.unwrap().unwrap().revision;
    runtime.admin().control(saga.name()).at_revision(revision).skip(WHY).await.unwrap();
    assert!(matches!(running.closed().await.unwrap(), Outcome::Compensated { .. }));
}

/// G5: who goes past an undo leaves the step as it is; whether it is still done is known of a transaction only.
#[tokio::test]
async fn g5_what_may_have_been_undone_is_not_taken_over() {
    let refuses = Refuses::default();
    refuses.0.store(true, Ordering::Relaxed);
    let known = Saga::named("known").input::<u32>().step::<reserve>().step::<ship>().build().unwrap();
    let unknown = Saga::named("unknown").input::<u32>().step::<charge>().step::<ship>().build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&known).saga(&unknown).state(refuses.clone());
    let runtime = runtime.start().await.unwrap();
    skipped(&runtime, &known).await;
    skipped(&runtime, &unknown).await;
    refuses.0.store(false, Ordering::Relaxed);
    let desk = runtime.admin();
    assert_eq!(desk.control("known").restart("ship", "known-again", WHY).await.unwrap(), RestartOutcome::Begun);
    assert!(matches!(ended(&runtime, "known-again").await, Outcome::Completed { .. }));
    let problem = desk.control("unknown").restart("ship", "unknown-again", WHY).await.unwrap_err().to_string();
    assert!(problem.contains("it is unknown whether the undo of its step `charge` happened"), "{problem}");
    runtime.shutdown().await;
}

/// What was taken over stands, however the saga ended that took it over.
#[tokio::test]
async fn what_came_to_nothing_again_begins_at_the_same_step_once_more() {
    let (store, refuses) = (MemoryStore::new(), Refuses::default());
    let runtime = start(&store, &refuses).await;
    runtime.start(&parcels(), "k", 1).await.unwrap();
    assert!(matches!(ended(&runtime, "k").await, Outcome::Completed { .. }));
    refuses.0.store(true, Ordering::Relaxed);
    runtime.admin().control("k").restart("bill", "second", WHY).await.unwrap();
    assert!(matches!(ended(&runtime, "second").await, Outcome::Compensated { .. }));
    refuses.0.store(false, Ordering::Relaxed);
    runtime.admin().control("second").restart("bill", "third", WHY).await.unwrap();
    assert!(matches!(ended(&runtime, "third").await, Outcome::Completed { .. }));
    assert_eq!(log(&store), ["pack 1", "bill box 1", "bill box 1"], "nothing is done again, and nothing undone");
    // What it did itself was undone.
    runtime.admin().control("k").restart("courier", "fourth", WHY).await.unwrap();
    assert!(matches!(ended(&runtime, "fourth").await, Outcome::Completed { .. }));
    runtime.shutdown().await;
}

/// G6: the same restart has the same answer, also when the old saga was reopened meanwhile by a success that came late.
#[tokio::test]
async fn g6_a_restart_that_was_made_is_known_after_the_old_saga_moved() {
    let (store, refuses) = (MemoryStore::new(), Refuses::default());
    let runtime = start(&store, &refuses).await;
    runtime.start(&parcels(), "k", 1).await.unwrap();
    assert!(matches!(ended(&runtime, "k").await, Outcome::Completed { .. }));
    assert_eq!(runtime.admin().control("k").restart("bill", "second", WHY).await.unwrap(), RestartOutcome::Begun);
    let old = store.saga(&Tenant::default(), &Key::new("k").unwrap()).await.unwrap().unwrap();
    let reopened = Advance { id: old.id, expected: old.version, status: Status::Stuck, state: old.state, expiry: None };
    let changes = Changes { saga: Some(reopened), ..Changes::default() };
    store.record(vec![changes]).await.unwrap()[0].clone().unwrap();
    assert_eq!(runtime.admin().control("k").restart("bill", "second", WHY).await.unwrap(), RestartOutcome::Already);
    let problem = runtime.admin().control("k").restart("bill", "third", WHY).await.unwrap_err().to_string();
    assert!(problem.contains("it has not ended"), "{problem}");
    runtime.shutdown().await;
}
