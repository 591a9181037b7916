//! Branches of a group that run side by side, join, fail, get stuck and are undone.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use saga_core::StepPhase;
use saga_core::engine::SagaStatus;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::store::HistoryKind;
use saga_core::{Outcome, Output, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use tokio::sync::Barrier;

/// What the steps share: who refuses, who is broken, what happened, and where two branches meet.
#[derive(Clone)]
struct Shop(Arc<Inside>);

struct Inside {
    refuses: Mutex<BTreeSet<&'static str>>,
    happened: Mutex<Vec<String>>,
    meeting: Option<Barrier>,
}

impl Shop {
    fn new(refuses: &[&'static str], meeting: Option<usize>) -> Self {
        let refuses = Mutex::new(refuses.iter().copied().collect());
        Self(Arc::new(Inside { refuses, happened: Mutex::default(), meeting: meeting.map(Barrier::new) }))
    }

    fn visit(&self, step: &'static str) -> Result<(), StepError> {
        if self.0.refuses.lock().unwrap().contains(step) {
            return Err(StepError::reject(format!("no {step}")));
        }
        self.0.happened.lock().unwrap().push(step.to_owned());
        Ok(())
    }

    async fn meet(&self) {
        if let Some(meeting) = &self.0.meeting {
            meeting.wait().await;
        }
    }

    fn happened(&self) -> Vec<String> {
        self.0.happened.lock().unwrap().clone()
    }
}

#[saga_step(compensate = release)]
async fn reserve(tx: &mut MemoryConn, order: u32, State(shop): State<Shop>) -> Result<u32, StepError> {
    tx.put("reserved", order.to_be_bytes())?;
    shop.visit("reserve")?;
    Ok(order + 1)
}

#[saga_compensation]
async fn release(_tx: &mut MemoryConn, _order: u32, _reserved: u32, State(shop): State<Shop>) -> Result<(), StepError> {
    shop.visit("release")
}

#[saga_step(compensate = refund)]
async fn charge(_ctx: &StepContext, order: u32, State(shop): State<Shop>) -> Result<u32, StepError> {
    shop.meet().await;
    shop.visit("charge")?;
    Ok(order + 10)
}

#[saga_compensation]
async fn refund(_ctx: &StepContext, _order: u32, charged: u32, State(shop): State<Shop>) -> Result<(), StepError> {
    shop.meet().await;
    shop.visit(if charged > 10 { "refund" } else { "refund of nothing" })
}

#[saga_step(compensate = unbook)]
async fn book(_ctx: &StepContext, order: u32, State(shop): State<Shop>) -> Result<u32, StepError> {
    shop.meet().await;
    shop.visit("book")?;
    Ok(order + 100)
}

#[saga_compensation]
async fn unbook(_ctx: &StepContext, _order: u32, _booked: u32, State(shop): State<Shop>) -> Result<(), StepError> {
    shop.meet().await;
    shop.visit("unbook")
}

#[saga_step(compensate = unpack)]
async fn pack(_tx: &mut MemoryConn, booked: u32, State(shop): State<Shop>) -> Result<u32, StepError> {
    shop.visit("pack")?;
    Ok(booked + 1_000)
}

#[saga_compensation]
async fn unpack(_tx: &mut MemoryConn, _booked: u32, _packed: u32, State(shop): State<Shop>) -> Result<(), StepError> {
    shop.visit("unpack")
}

#[saga_step]
async fn confirm(
    tx: &mut MemoryConn,
    sum: u32,
    Output(packed): Output<pack>,
    State(shop): State<Shop>,
) -> Result<(), StepError> {
    shop.visit("confirm")?;
    tx.put(format!("sum {packed}").as_str(), sum.to_be_bytes())?;
    Ok(())
}

/// `reserve`, then `charge` beside `book` and `pack`, then `confirm` with the outputs of both branches.
fn order() -> Saga<MemoryStore, u32> {
    Saga::named("order")
        .input::<u32>()
        .step::<reserve>()
        .parallel(|group| {
            group.branch(Branch::step::<charge>).branch(|branch| {
                branch.step::<book>().step_from::<pack, _>(|_: &u32, Output(booked): Output<book>| booked)
            })
        })
        .step_from::<confirm, _>(|_: &u32, Output(charged): Output<charge>, Output(packed): Output<pack>| {
            charged + packed
        })
        .build()
        .unwrap()
}

async fn runtime(store: &MemoryStore, saga: &Saga<MemoryStore, u32>, shop: &Shop) -> Runtime<MemoryStore> {
    Runtime::builder(store.clone()).saga(saga).state(shop.clone()).start().await.unwrap()
}

fn place(happened: &[String], what: &str) -> usize {
    happened.iter().position(|other| other == what).unwrap_or_else(|| panic!("no {what} in {happened:?}"))
}

/// The two calls wait for each other, so the saga ends only if its branches are under way at once.
#[tokio::test]
async fn branches_run_at_once_and_join_with_their_outputs() {
    let (store, saga, shop) = (MemoryStore::new(), order(), Shop::new(&[], Some(2)));
    let runtime = runtime(&store, &saga, &shop).await;
    let running = runtime.start(&saga, "o-1", 7).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    let happened = shop.happened();
    assert_eq!((happened.len(), place(&happened, "reserve"), place(&happened, "confirm")), (5, 0, 4), "{happened:?}");
    assert!(place(&happened, "book") < place(&happened, "pack"));
    let sum = store.read(|table| table.get("sum 1107").unwrap().to_vec());
    assert_eq!(sum, (17_u32 + 1_107).to_be_bytes());
    runtime.shutdown().await;
}

/// Each branch is recorded while the other is under way, in every order that comes up.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sagas_join_whatever_branch_is_last() {
    const SAGAS: u32 = 200;
    let (store, saga, shop) = (MemoryStore::new(), order(), Shop::new(&[], None));
    let runtime = runtime(&store, &saga, &shop).await;
    let mut running = Vec::new();
    for number in 0..SAGAS {
        running.push(runtime.start(&saga, format!("o-{number}"), number).await.unwrap());
    }
    for (number, running) in (0..SAGAS).zip(running) {
        let outcome = running.outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "saga {number}: {outcome}");
        let sum = store.read(|table| table.get(&format!("sum {}", number + 1_100)).unwrap().to_vec());
        assert_eq!(sum, (2 * number + 1_110).to_be_bytes(), "saga {number}");
    }
    runtime.shutdown().await;
}

/// The compensations of the two branches wait for each other, so that they end only if they run at once.
#[tokio::test]
async fn a_failure_behind_the_group_undoes_its_branches_at_once() {
    let (store, saga, shop) = (MemoryStore::new(), order(), Shop::new(&["confirm"], Some(2)));
    let runtime = runtime(&store, &saga, &shop).await;
    let running = runtime.start(&saga, "o-1", 7).await.unwrap();
    let Outcome::Compensated { failed_step, .. } = running.outcome().await.unwrap() else { panic!("not undone") };
    assert_eq!(failed_step, "confirm");
    let happened = shop.happened();
    assert!(place(&happened, "unpack") < place(&happened, "unbook"), "{happened:?}");
    assert!(place(&happened, "refund") < place(&happened, "release"), "{happened:?}");
    assert!(place(&happened, "unbook") < place(&happened, "release"), "{happened:?}");
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_failed_branch_undoes_what_its_siblings_did() {
    let (store, saga, shop) = (MemoryStore::new(), order(), Shop::new(&["charge"], None));
    let runtime = runtime(&store, &saga, &shop).await;
    let running = runtime.start(&saga, "o-1", 7).await.unwrap();
    let Outcome::Compensated { failed_step, .. } = running.outcome().await.unwrap() else { panic!("not undone") };
    assert_eq!(failed_step, "charge");
    let happened = shop.happened();
    assert!(!happened.contains(&"confirm".to_owned()) && !happened.contains(&"refund".to_owned()), "{happened:?}");
    for (step, undo) in [("book", "unbook"), ("pack", "unpack"), ("reserve", "release")] {
        assert_eq!(happened.contains(&step.to_owned()), happened.contains(&undo.to_owned()), "{happened:?}");
    }
    assert_eq!(happened.last().map(String::as_str), Some("release"));
    runtime.shutdown().await;
}

/// Both undos are refused at once. Neither is lost: each has its turn with a person, and its line in the history.
#[tokio::test]
async fn branches_that_get_stuck_beside_each_other_are_both_seen() {
    let (store, saga, shop) = (MemoryStore::new(), order(), Shop::new(&["confirm", "refund", "unbook"], Some(2)));
    let runtime = runtime(&store, &saga, &shop).await;
    let running = runtime.start(&saga, "o-1", 7).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Stuck { .. }));
    let status = loop {
        let status = runtime.status("o-1").await.unwrap().unwrap();
        if stuck(&status).len() == 2 {
            break status;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(stuck(&status), ["charge", "book"]);
    shop.0.refuses.lock().unwrap().clear();
    runtime.admin().control("o-1").at_revision(status.revision).skip("refunded by hand").await.unwrap();
    let status = runtime.status("o-1").await.unwrap().unwrap();
    assert_eq!(stuck(&status).len(), 1);
    runtime.admin().control("o-1").at_revision(status.revision).skip("unbooked by hand").await.unwrap();
    assert!(matches!(running.closed().await.unwrap(), Outcome::Compensated { .. }));
    let status = runtime.status("o-1").await.unwrap().unwrap();
    let entries = status.history.iter().filter(|entry| entry.kind == HistoryKind::Stuck).count();
    assert_eq!(entries, 2);
    assert_eq!(shop.happened().last().map(String::as_str), Some("release"));
    runtime.shutdown().await;
}

fn stuck(status: &SagaStatus) -> Vec<&str> {
    status.steps.iter().filter(|step| step.stuck.is_some()).map(|step| step.step.as_str()).collect()
}

#[tokio::test]
async fn the_status_says_what_each_step_comes_after() {
    let (store, saga, shop) = (MemoryStore::new(), order(), Shop::new(&[], None));
    let runtime = runtime(&store, &saga, &shop).await;
    runtime.start(&saga, "o-1", 7).await.unwrap().outcome().await.unwrap();
    let status = runtime.status("o-1").await.unwrap().unwrap();
    let after: Vec<String> =
        status.steps.iter().map(|step| format!("{} <- {}", step.step, step.after.join(" "))).collect();
    let expected = ["reserve <- ", "charge <- reserve", "book <- reserve", "pack <- book", "confirm <- charge pack"];
    assert_eq!(after, expected);
    assert!(status.steps.iter().all(|step| step.phase == StepPhase::Done && step.stuck.is_none()));
    runtime.shutdown().await;
}

#[test]
fn the_chart_forks_and_joins() {
    let chart = order().to_mermaid();
    for line in ["s0 --> s1", "s0 --> s2", "s2 --> s3", "s1 --> s4", "s3 --> s4", "u1 --> u0", "u3 --> u2"] {
        assert!(chart.lines().any(|other| other.trim() == line), "no `{line}` in {chart}");
    }
    assert!(!chart.contains("s1 --> s2") && !chart.contains("s1 --> completed"), "{chart}");
}

#[test]
fn what_does_not_hold_together_is_refused() {
    let problems = |built: Result<Saga<MemoryStore, u32>, saga_core::saga::SagaError>| built.unwrap_err().to_string();
    let new = || Saga::named("order").input::<u32>();
    let sibling = new()
        .parallel(|group| {
            group
                .branch(Branch::step::<book>)
                .branch(|branch| branch.step_from::<pack, _>(|_: &u32, Output(booked): Output<book>| booked))
        })
        .build();
    let said = problems(sibling);
    assert!(said.contains("`pack` needs the output of `book`, which runs beside it"), "{said}");
    let said = problems(new().step::<reserve>().parallel(|group| group).build());
    assert!(said.contains("a parallel group has no branch"), "{said}");
    let said = problems(new().parallel(|group| group.branch(|branch| branch)).build());
    assert!(said.contains("a branch of a parallel group has no step"), "{said}");
    let said = problems(new().parallel(|group| group.branch(|branch| branch.step::<charge>().pivot())).build());
    assert!(said.contains("`.pivot()` stands inside a parallel group"), "{said}");
    let behind = |branch: Branch<MemoryStore, u32>| branch.step::<charge>();
    let said = problems(new().parallel(|group| group.branch(behind).branch(Branch::step::<book>)).pivot().build());
    assert!(said.contains("`.pivot()` stands behind a parallel group"), "{said}");
}

/// A last step without a compensation is the pivot; the last one of a group is not, since another may fail beside it.
#[test]
fn a_last_group_needs_compensations() {
    #[saga_step]
    async fn tell(_ctx: &StepContext, _order: u32) -> Result<(), StepError> {
        Ok(())
    }
    let new = || Saga::<MemoryStore, ()>::named("order").input::<u32>();
    let built = new().parallel(|group| group.branch(Branch::step::<charge>).branch(Branch::step::<tell>));
    let said = built.build().unwrap_err().to_string();
    assert!(said.contains("`tell` may have to be undone, but has no compensation"), "{said}");
    assert!(new().step::<charge>().step::<tell>().build().is_ok());
}
