//! Crash exploration of a migration: a sound one passes, and each of several mistakes in it is found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use saga_core::engine::RuntimeBuilder;
use saga_core::memory::MemoryConn;
use saga_core::{Migration, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{Ended, Explore, Explored, Failures, explore};
use saga_testkit::faulty::{FaultyStore, StoreFlaw};
use serde::{Deserialize, Serialize};

/// Somebody outside who takes money by the key of the step that brings it.
#[derive(Clone, Default)]
struct Gateway(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    charged: BTreeMap<String, i64>,
    refunded: BTreeSet<String>,
}

impl Gateway {
    fn net(&self) -> i64 {
        let book = self.0.lock().unwrap();
        let stands = book.charged.iter().filter(|(key, _)| !book.refunded.contains(*key));
        stands.map(|(_, amount)| amount).sum()
    }
}

/// The pieces that a shelf gave.
#[derive(Serialize, Deserialize)]
struct Pieces {
    count: i64,
    shelf: String,
}

/// What is known of pieces that the first version took.
fn pieces(count: i64) -> Pieces {
    Pieces { count, shelf: "anywhere".to_owned() }
}

#[saga_step(compensate = put_back)]
async fn take_out(conn: &mut MemoryConn, count: i64) -> Result<i64, StepError> {
    conn.add("stock", -count)?;
    Ok(count)
}

#[saga_compensation]
async fn put_back(conn: &mut MemoryConn, _count: i64, taken: i64) -> Result<(), StepError> {
    conn.add("stock", taken)?;
    Ok(())
}

/// The same in the second version.
#[saga_step(name = "take-out", compensate = put_on_shelf)]
async fn fetch(conn: &mut MemoryConn, count: i64) -> Result<Pieces, StepError> {
    conn.add("stock", -count)?;
    Ok(Pieces { count, shelf: "A 4".to_owned() })
}

#[saga_compensation]
async fn put_on_shelf(conn: &mut MemoryConn, _count: i64, pieces: Pieces) -> Result<(), StepError> {
    conn.add("stock", pieces.count)?;
    Ok(())
}

/// Where the second version takes the pieces at the end, it only looks here whether there are any.
#[saga_step(name = "take-out", no_compensation)]
async fn look(conn: &mut MemoryConn, count: i64) -> Result<i64, StepError> {
    let _ = conn;
    Ok(count)
}

#[saga_step(no_compensation)]
async fn weigh(conn: &mut MemoryConn, count: i64) -> Result<i64, StepError> {
    let _ = conn;
    Ok(count * 250)
}

#[saga_step(compensate = refund, timeout = "2s")]
async fn charge(ctx: &StepContext, count: i64, State(gateway): State<Gateway>) -> Result<(), StepError> {
    let mut book = gateway.0.lock().unwrap();
    if book.refunded.contains(ctx.key()) {
        return Err(StepError::reject("refunded"));
    }
    book.charged.insert(ctx.key().to_owned(), count);
    Ok(())
}

#[saga_compensation]
async fn refund(
    ctx: &StepContext,
    _count: i64,
    charged: Option<()>,
    State(gateway): State<Gateway>,
) -> Result<(), StepError> {
    let _ = charged;
    gateway.0.lock().unwrap().refunded.insert(ctx.original_key().to_owned());
    Ok(())
}

#[saga_step]
async fn confirm(conn: &mut MemoryConn, count: i64) -> Result<(), StepError> {
    conn.add("sold", count)?;
    Ok(())
}

/// Confirms, and takes the pieces.
#[saga_step(name = "confirm")]
async fn confirm_and_take(conn: &mut MemoryConn, count: i64) -> Result<(), StepError> {
    conn.add("sold", count)?;
    conn.add("stock", -count)?;
    Ok(())
}

struct World {
    store: FaultyStore,
    gateway: Gateway,
}

/// Which of the ways to be wrong, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Sound,
    /// What it makes of the old output is not what was taken.
    Miscounts,
    /// The new version takes the pieces at another step, and sagas that have taken them do so again.
    TakesAgain,
    /// The new version has a step behind which no saga may go, and the migration does not say what becomes of it.
    LetsNobodyPast,
    /// It is one of another version than the saga has.
    BeginsElsewhere,
    /// The store takes the work away from whoever has it.
    TakesHeldWork,
}

fn version(number: u32) -> Saga<FaultyStore, i64> {
    Saga::named("buy").input().version(number).step::<take_out>().step::<charge>().step::<confirm>().build().unwrap()
}

impl Way {
    fn version_2(self) -> Saga<FaultyStore, i64> {
        let saga = Saga::named("buy").input().version(2);
        if self == Self::TakesAgain {
            return saga.step::<look>().step::<weigh>().step::<charge>().step::<confirm_and_take>().build().unwrap();
        }
        saga.step::<fetch>().step::<weigh>().step::<charge>().step::<confirm>().build().unwrap()
    }
}

#[async_trait]
impl Explore for Way {
    type Store = FaultyStore;
    type Input = i64;
    type World = World;

    fn saga(&self) -> Saga<FaultyStore, i64> {
        version(1)
    }

    fn input(&self) -> i64 {
        3
    }

    async fn fresh(&self, time: &VirtualTime) -> World {
        let flaw = (*self == Self::TakesHeldWork).then_some(StoreFlaw::MigratesHeldWork);
        World { store: FaultyStore::on_time(time, flaw), gateway: Gateway::default() }
    }

    fn store(&self, world: &World) -> Arc<FaultyStore> {
        Arc::new(world.store.clone())
    }

    fn states(
        &self,
        world: &World,
        runtime: RuntimeBuilder<Explored<FaultyStore>>,
    ) -> RuntimeBuilder<Explored<FaultyStore>> {
        runtime.state(world.gateway.clone())
    }

    fn migration(&self) -> Option<Migration<FaultyStore>> {
        let way = Migration::between(&version(if *self == Self::BeginsElsewhere { 3 } else { 1 }), &self.version_2());
        let way = match self {
            Self::TakesAgain => way.step::<take_out, look>(),
            Self::Miscounts => way.step_with::<take_out, fetch>(|_| pieces(1)),
            _ => way.step_with::<take_out, fetch>(pieces),
        };
        let way = if *self == Self::LetsNobodyPast { way } else { way.assume_done::<weigh>() };
        Some(way.build().unwrap())
    }

    async fn audit(&self, world: &World, ended: &Ended) -> Result<(), String> {
        let (stock, sold) = world.store.memory().read(|table| (table.counter("stock"), table.counter("sold")));
        let net = world.gateway.net();
        let expected = if *ended == Ended::Completed { (-3, 3, 3) } else { (0, 0, 0) };
        if (stock, sold, net) == expected {
            return Ok(());
        }
        Err(format!("{ended:?}, and stock, sold and charged are {:?}", (stock, sold, net)))
    }
}

fn found_in(failures: &Failures, disturbance: &str, problem: &str) -> bool {
    let is_it = |found: &&saga_testkit::explore::Broken| {
        found.disturbance.starts_with(disturbance) && found.problem.contains(problem)
    };
    failures.broken.iter().any(|broken| is_it(&broken))
}

/// A step has begun, has ended, is being undone: it goes on there, and is undone there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_a_saga_that_moves_at_any_boundary_is_done_whole_or_not_at_all() {
    let report = explore(Way::Sound).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    let moves = report.moves().unwrap();
    assert!(moves.moved() > moves.points() / 3, "{moves}");
    assert_eq!(moves.moved() + moves.unmoved().len() as u64, moves.points(), "{moves}");
    let is_unmoved = |point: &str| moves.unmoved().iter().any(|unmoved| unmoved.point == point);
    for point in ["behind the start", "behind take-out", "before charge", "behind charge", "before confirm"] {
        assert!(!is_unmoved(&format!("moved after a crash {point}")), "{moves:#?}");
    }
    for point in ["before charge:undo, while confirm rejects", "behind take-out:undo, while charge rejects"] {
        assert!(!is_unmoved(&format!("moved after a crash {point}")), "{moves:#?}");
    }
    assert!(moves.waited() > 0 && report.crashes() > moves.points() / 3, "{report}");
    let reasons = ["it has not been started yet", "it has ended, and stays on the version that it ended with"];
    for unmoved in moves.unmoved() {
        assert!(reasons.contains(&unmoved.reason.as_str()), "{unmoved:?}");
    }
    assert!(report.to_string().contains("not moved at"), "{report}");
}

/// Where it cannot be moved it goes on as it was, and the report says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_point_at_which_it_cannot_be_moved_is_named() {
    let report = explore(Way::LetsNobodyPast).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    let moves = report.moves().unwrap();
    let unmoved = moves.unmoved().iter().find(|unmoved| unmoved.point == "moved after a crash behind charge").unwrap();
    assert!(unmoved.reason.contains("if it is not needed there, say so with `.assume_done::<step>()`"), "{moves:#?}");
    assert!(moves.moved() > 0, "{moves}");
}

/// Either version alone is sound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_by_which_something_is_done_again_is_found() {
    let failures = explore(Way::TakesAgain).await.unwrap_err();
    println!("{failures}");
    assert!(found_in(&failures, "moved after a crash behind the transaction of take-out", "(-6, 3, 3)"), "{failures}");
    assert!(failures.broken.iter().all(|broken| broken.disturbance.starts_with("moved ")), "{failures}");
}

/// Whoever turns round behind the move puts back what the migration says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_mistakes_what_a_step_returned_is_found() {
    let failures = explore(Way::Miscounts).await.unwrap_err();
    println!("{failures}");
    let at = "moved after a crash behind the transaction of take-out; then charge rejects in the new version";
    assert!(found_in(&failures, at, "(-2, 0, 0)"), "{failures}");
    let way_back = "moved after a crash behind the record of charge as rejected, while charge rejects";
    assert!(found_in(&failures, way_back, "(-2, 0, 0)"), "{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_moves_what_is_under_way_is_found() {
    let failures = explore(Way::TakesHeldWork).await.unwrap_err();
    println!("{failures}");
    let at = "moved while its process is held up before charge";
    assert!(found_in(&failures, at, "while another process had a step of it under way"), "{failures}");
}

/// A migration that begins with another version than the saga's moves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_moves_nothing_is_a_failure() {
    let failures = explore(Way::BeginsElsewhere).await.unwrap_err();
    assert!(
        found_in(&failures, "the migration", "it is a saga of buy version 1, and not of buy version 3"),
        "{failures}"
    );
}
