//! Crash exploration of sagas that are started instead of others: sound ones pass, and each of several mistakes is found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use saga_core::engine::RuntimeBuilder;
use saga_core::machine::{SagaState, StepPhase};
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::{SagaWithSteps, Status};
use saga_core::{Saga, State, StepContext, StepError, saga_compensation, saga_step};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{Ended, Explore, Explored, Failures, Restarted, explore};
use serde::{Deserialize, Serialize};

/// An order by its number.
#[derive(Clone, Serialize, Deserialize)]
struct Order {
    number: String,
    count: i64,
}

/// Somebody outside who takes money by a key.
#[derive(Clone, Default)]
struct Gateway {
    book: Arc<Mutex<Book>>,
    /// Whether it is given the order's number, and not the key of the step.
    knows_numbers: bool,
}

#[derive(Default)]
struct Book {
    charged: BTreeMap<String, i64>,
    refunded: BTreeSet<String>,
}

impl Gateway {
    fn key<'a>(&self, order: &'a Order, key: &'a str) -> &'a str {
        if self.knows_numbers { &order.number } else { key }
    }

    fn net(&self) -> i64 {
        let book = self.book.lock().unwrap();
        let stands = book.charged.iter().filter(|(key, _)| !book.refunded.contains(*key));
        stands.map(|(_, amount)| amount).sum()
    }
}

#[saga_step(no_compensation)]
async fn weigh(conn: &mut MemoryConn, order: Order) -> Result<i64, StepError> {
    let _ = conn;
    Ok(order.count * 250)
}

#[saga_step(compensate = put_back)]
async fn take_out(conn: &mut MemoryConn, order: Order) -> Result<(), StepError> {
    conn.add("stock", -order.count)?;
    Ok(())
}

#[saga_compensation]
async fn put_back(conn: &mut MemoryConn, order: Order) -> Result<(), StepError> {
    conn.add("stock", order.count)?;
    Ok(())
}

/// Keeps the shelf tidy: whatever is missing is put back.
#[saga_step(name = "take-out", compensate = put_all_back)]
async fn take_from_shelf(conn: &mut MemoryConn, order: Order) -> Result<(), StepError> {
    conn.add("stock", -order.count)?;
    Ok(())
}

#[saga_compensation]
async fn put_all_back(conn: &mut MemoryConn, _order: Order) -> Result<(), StepError> {
    let missing = -conn.counter("stock");
    conn.add("stock", missing)?;
    Ok(())
}

#[saga_step(compensate = refund, timeout = "2s")]
async fn charge(ctx: &StepContext, order: Order, State(gateway): State<Gateway>) -> Result<(), StepError> {
    let key = gateway.key(&order, ctx.key());
    let mut book = gateway.book.lock().unwrap();
    if book.refunded.contains(key) {
        return Err(StepError::reject("refunded"));
    }
    book.charged.insert(key.to_owned(), order.count);
    Ok(())
}

#[saga_compensation]
async fn refund(
    ctx: &StepContext,
    order: Order,
    charged: Option<()>,
    State(gateway): State<Gateway>,
) -> Result<(), StepError> {
    let _ = charged;
    let key = gateway.key(&order, ctx.original_key());
    gateway.book.lock().unwrap().refunded.insert(key.to_owned());
    Ok(())
}

#[saga_step]
async fn confirm(conn: &mut MemoryConn, order: Order) -> Result<(), StepError> {
    conn.add("sold", order.count)?;
    Ok(())
}

struct World {
    store: Arc<MemoryStore>,
    gateway: Gateway,
}

/// Which of the ways to be wrong, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shop {
    Sound,
    /// The audit is that of one saga.
    AuditsOne,
    /// The card is charged by the order's number.
    ChargesByNumber,
    /// What was undone is read as if it were done.
    TakesOverWhatWasUndone,
    /// Whoever turns round also puts back what another saga took.
    PutsAllBack,
}

#[async_trait]
impl Explore for Shop {
    type Store = MemoryStore;
    type Input = Order;
    type World = World;

    fn saga(&self) -> Saga<MemoryStore, Order> {
        let saga = Saga::named("buy").input().step::<weigh>();
        let saga = if *self == Self::PutsAllBack { saga.step::<take_from_shelf>() } else { saga.step::<take_out>() };
        saga.step::<charge>().step::<confirm>().build().unwrap()
    }

    fn input(&self) -> Order {
        Order { number: "A-1".to_owned(), count: 3 }
    }

    async fn fresh(&self, time: &VirtualTime) -> World {
        let gateway = Gateway { knows_numbers: *self == Self::ChargesByNumber, ..Gateway::default() };
        World { store: Arc::new(MemoryStore::with_environment(time.environment())), gateway }
    }

    fn store(&self, world: &World) -> Arc<MemoryStore> {
        Arc::clone(&world.store)
    }

    fn states(
        &self,
        world: &World,
        runtime: RuntimeBuilder<Explored<MemoryStore>>,
    ) -> RuntimeBuilder<Explored<MemoryStore>> {
        runtime.state(world.gateway.clone())
    }

    fn restarts(&self) -> bool {
        true
    }

    fn misreads(&self) -> Option<fn(&mut SagaWithSteps)> {
        (*self == Self::TakesOverWhatWasUndone).then_some(without_undos)
    }

    async fn audit(&self, world: &World, ended: &Ended) -> Result<(), String> {
        compare(world, if *ended == Ended::Completed { [1, 1, 1] } else { [0, 0, 0] }, false)
    }

    async fn audit_restarted(&self, world: &World, restarted: &Restarted) -> Result<(), String> {
        match restarted.amounts_to() {
            Some(ended) => self.audit(world, &ended).await,
            None if *self == Self::AuditsOne => Ok(()),
            None => {
                let standing = ["take-out", "charge", "confirm"].map(|step| restarted.standing(step));
                compare(world, standing.map(u64::cast_signed), restarted.is_doubtful("charge"))
            }
        }
    }
}

/// A saga as it was before it turned round.
fn without_undos(stored: &mut SagaWithSteps) {
    let is_old = stored.saga.key.as_str() == "explored" && stored.saga.status == Status::Compensated;
    let Ok(mut state) = SagaState::decode(&stored.saga.state, 4) else { return };
    for step in state.steps.iter_mut().filter(|step| is_old && step.phase == StepPhase::Undone) {
        step.phase = StepPhase::Done;
    }
    stored.saga.state = state.encode();
}

/// Whether what is there is what so many orders of three leave. Of a charge that is doubtful there may be one more.
fn compare(world: &World, [taken, charged, sold]: [i64; 3], is_doubtful: bool) -> Result<(), String> {
    let (stock, confirmed) = world.store.read(|table| (table.counter("stock"), table.counter("sold")));
    let net = world.gateway.net();
    let is_charged = net == 3 * charged || (is_doubtful && net == 3 * charged + 3);
    if (stock, confirmed) == (-3 * taken, 3 * sold) && is_charged {
        return Ok(());
    }
    Err(format!(
        "stock, sold and charged are {:?}, and it was to be {taken}, {sold} and {charged} times",
        (stock, confirmed, net)
    ))
}

fn found_in(failures: &Failures, disturbance: &str, problem: &str) -> bool {
    let mut broken = failures.broken.iter();
    broken.any(|broken| broken.disturbance == disturbance && broken.problem.contains(problem))
}

/// From each step from which it may begin, whatever crashes and whatever rejects there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_what_is_restarted_leaves_what_its_two_sagas_say() {
    let report = explore(Shop::Sound).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    let restarts = report.restarts().unwrap();
    assert_eq!((restarts.tried(), restarts.begun() + restarts.refused().len() as u64), (32, 32), "{restarts:#?}");
    let refused = |point: &str| restarts.refused().iter().find(|refused| refused.point == point);
    // What needs no compensation stands, and so does what a person left as it was.
    for point in [
        "restarted from weigh, after charge had rejected",
        "restarted from take-out, after charge had rejected",
        "restarted from charge, after an error each time before take-out:undo, after charge had rejected",
    ] {
        assert_eq!(refused(point), None, "{restarts:#?}");
    }
    for (point, reason) in [
        ("restarted from charge, after charge had rejected", "its step `take-out` was undone"),
        ("restarted from charge, after take-out had rejected", "its step `take-out` did not take effect"),
        (
            "restarted from confirm, after an error each time behind charge:undo, after confirm had rejected",
            "it is unknown whether the undo of its step `charge` happened",
        ),
    ] {
        assert!(refused(point).is_some_and(|refused| refused.reason.contains(reason)), "{point}: {restarts:#?}");
    }
    assert!(restarts.mixed() > 0 && report.crashes() > report.boundaries().len() as u64, "{report}");
    assert!(report.to_string().contains("restarted 19 of 32 times"), "{report}");
}

/// An audit that knows one saga judges what amounts to one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_of_one_saga_judges_a_restart_too() {
    let report = explore(Shop::AuditsOne).await.unwrap_or_else(|failures| panic!("{failures}"));
    let restarts = report.restarts().unwrap();
    assert!(restarts.begun() > 0 && restarts.mixed() > 0, "{restarts}");
}

/// Alone, no saga ever meets the key of another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_is_called_by_the_number_of_an_order_is_found() {
    let failures = explore(Shop::ChargesByNumber).await.unwrap_err();
    println!("{failures}");
    let at = "restarted from take-out, after confirm had rejected";
    assert!(found_in(&failures, at, "the new saga ended Compensated instead of Completed"), "{failures}");
    assert!(failures.broken.iter().all(|broken| broken.disturbance.starts_with("restarted ")), "{failures}");
}

/// Only who counts what stands sees that something is missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_that_also_undoes_what_another_saga_did_is_found() {
    let failures = explore(Shop::PutsAllBack).await.unwrap_err();
    println!("{failures}");
    let at = "restarted from take-out, after an error each time before take-out:undo, after charge had rejected; \
              then charge rejects in the new saga";
    assert!(found_in(&failures, at, "are (0, 0, 0), and it was to be 1, 0 and 0 times"), "{failures}");
    assert!(failures.broken.iter().all(|broken| broken.disturbance.starts_with("restarted ")), "{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_that_takes_over_what_was_undone_is_found() {
    let failures = explore(Shop::TakesOverWhatWasUndone).await.unwrap_err();
    println!("{failures}");
    assert!(
        found_in(&failures, "restarted from charge, after charge had rejected", "nothing of take-out stands"),
        "{failures}"
    );
}
