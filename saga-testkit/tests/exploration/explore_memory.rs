//! Crash exploration on the memory store: a sound saga passes, and each of several broken ones is found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::engine::{RuntimeBuilder, SagaAdmin};
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::store::{LockFilter, SemanticLocks as _};
use saga_core::{
    Entity, Saga, SemanticLock, Signal, Signaled, State, StepContext, StepError, SubSaga, Tenant, Wait,
    saga_compensation, saga_step,
};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{Ended, Explore, Explored, Failures, explore};
use serde::{Deserialize, Serialize};

/// A gateway that honours keys, and bars those that were refunded.
#[derive(Clone, Default)]
struct Gateway {
    book: Arc<Mutex<Book>>,
    /// Whether it forgets that it has seen a key.
    forgets: bool,
}

#[derive(Default)]
struct Book {
    charged: BTreeMap<String, i64>,
    refunded: BTreeSet<String>,
    net: i64,
}

#[saga_step(compensate = put_back)]
async fn take_out(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
    conn.add("stock", -amount)?;
    Ok(())
}

#[saga_compensation]
async fn put_back(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
    conn.add("stock", amount)?;
    Ok(())
}

/// An undo that was written for a world without repetition: it writes outside of its transaction.
#[saga_step(name = "take-out", compensate = put_back_by_hand)]
async fn take_out_by_hand(ctx: &StepContext, amount: i64, State(store): State<Shelf>) -> Result<(), StepError> {
    let _ = ctx;
    *store.0.lock().unwrap() -= amount;
    Ok(())
}

#[saga_compensation]
async fn put_back_by_hand(ctx: &StepContext, amount: i64, State(store): State<Shelf>) -> Result<(), StepError> {
    let _ = ctx;
    *store.0.lock().unwrap() += amount;
    Ok(())
}

#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<i64>>);

#[saga_step(compensate = refund, timeout = "2s")]
async fn charge(ctx: &StepContext, amount: i64, State(gateway): State<Gateway>) -> Result<i64, StepError> {
    let mut book = gateway.book.lock().unwrap();
    if book.refunded.contains(ctx.key()) {
        return Err(StepError::reject("refunded"));
    }
    if gateway.forgets || !book.charged.contains_key(ctx.key()) {
        book.charged.insert(ctx.key().to_owned(), amount);
        book.net += amount;
    }
    Ok(amount)
}

#[saga_compensation]
async fn refund(
    ctx: &StepContext,
    amount: i64,
    charged: Option<i64>,
    State(gateway): State<Gateway>,
) -> Result<(), StepError> {
    let _ = (amount, charged);
    let mut book = gateway.book.lock().unwrap();
    if book.refunded.insert(ctx.original_key().to_owned()) {
        book.net -= book.charged.get(ctx.original_key()).copied().unwrap_or(0);
    }
    Ok(())
}

#[saga_step(no_compensation)]
async fn waive(_ctx: &StepContext, _amount: i64) -> Result<(), StepError> {
    Ok(())
}

#[saga_step]
async fn confirm(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
    conn.add("sold", amount)?;
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Word(i64);

impl Signal for Word {
    const NAME: &'static str = "word";
}

struct World {
    store: Arc<MemoryStore>,
    gateway: Gateway,
    shelf: Shelf,
}

struct Paying;

impl SubSaga for Paying {
    const NAME: &'static str = "paying";
    type Input = i64;
    type Output = i64;
}

struct Till;

impl SemanticLock for Till {
    const NAME: &'static str = "till";
}

/// Which of the ways to be wrong, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shop {
    Sound,
    GatewayForgets,
    StockByHand,
    AuditDisagrees,
    /// The stock and the card at once.
    AtOnce,
    /// The card is charged where it is told to, else nothing is.
    Choosing,
    /// It sleeps, waits for a word, and has a deadline.
    Waiting,
    /// It locks the till first.
    Locking,
    /// A person pauses and resumes it.
    HeldUp,
    /// The card is charged by a saga of its own.
    BySubSaga,
    /// Piece by piece: each is taken out, and each is charged, two at once.
    Each,
}

#[async_trait]
impl Explore for Shop {
    type Store = MemoryStore;
    type Input = i64;
    type World = World;

    fn saga(&self) -> Saga<MemoryStore, i64> {
        let saga = Saga::named("buy").input();
        let saga = match self {
            Self::StockByHand => saga.step::<take_out_by_hand>(),
            Self::AtOnce => {
                let saga = saga.parallel(|group| group.branch(Branch::step::<take_out>).branch(Branch::step::<charge>));
                return saga.step::<confirm>().build().unwrap();
            }
            Self::BySubSaga => {
                let paying = Saga::named("pay").input().step::<charge>().returns::<charge>().build().unwrap();
                return saga.step::<take_out>().sub_saga::<Paying>(&paying).step::<confirm>().build().unwrap();
            }
            Self::Each => {
                let pieces = |amount: &i64| vec![1; usize::try_from(*amount).unwrap()];
                let saga = saga.for_each::<take_out, _>(2, pieces).for_each::<charge, _>(2, pieces);
                return saga.step::<confirm>().build().unwrap();
            }
            Self::Waiting => {
                let saga = saga.deadline(Duration::from_hours(1)).step::<take_out>();
                let saga = saga.sleep("rest", Duration::from_millis(20)).wait_for::<Word>(Wait::without_limit());
                return saga
                    .step_from::<charge, _>(|_: &i64, Signaled(word): Signaled<Word>| word.0)
                    .step::<confirm>()
                    .build()
                    .unwrap();
            }
            Self::Locking => saga
                .semantic_lock::<Till, _>(|_: &i64| [Entity::new("till", 1), Entity::new("till", 2)])
                .step::<take_out>(),
            Self::Choosing => {
                let saga = saga.step::<take_out>().choose("payment", |choice| {
                    choice
                        .when("by-card", |amount: &i64| *amount < 9, Branch::step::<charge>)
                        .otherwise(Branch::step::<waive>)
                });
                return saga.step::<confirm>().build().unwrap();
            }
            _ => saga.step::<take_out>(),
        };
        saga.step::<charge>().step::<confirm>().build().unwrap()
    }

    fn input(&self) -> i64 {
        3
    }

    async fn fresh(&self, time: &VirtualTime) -> World {
        let gateway = Gateway { forgets: *self == Self::GatewayForgets, ..Gateway::default() };
        World { store: Arc::new(MemoryStore::with_environment(time.environment())), gateway, shelf: Shelf::default() }
    }

    fn store(&self, world: &World) -> Arc<MemoryStore> {
        Arc::clone(&world.store)
    }

    fn states(
        &self,
        world: &World,
        runtime: RuntimeBuilder<Explored<MemoryStore>>,
    ) -> RuntimeBuilder<Explored<MemoryStore>> {
        runtime.state(world.gateway.clone()).state(world.shelf.clone())
    }

    async fn meanwhile(&self, desk: &SagaAdmin<Explored<MemoryStore>>, key: &str) -> Result<(), String> {
        let done = match self {
            // The saga has the word of an earlier life, or has turned round.
            Self::Waiting => desk.control(key).signal("letter-1", &Word(3)).await.map(drop),
            Self::HeldUp => {
                let paused = desk.control(key).pause("an operator looks at it").await;
                paused.and(desk.control(key).resume("all is well").await).map(drop)
            }
            _ => return Ok(()),
        };
        done.map_err(|error| error.to_string())
    }

    fn restarts(&self) -> bool {
        matches!(self, Self::AtOnce | Self::Choosing | Self::BySubSaga | Self::Each)
    }

    async fn audit(&self, world: &World, ended: &Ended) -> Result<(), String> {
        let (stock, sold) = world.store.read(|table| (table.counter("stock"), table.counter("sold")));
        let stock = stock + *world.shelf.0.lock().unwrap();
        let net = world.gateway.book.lock().unwrap().net;
        let expected = if *ended == Ended::Completed { (-3, 3, 3) } else { (0, 0, 0) };
        if *self == Self::AuditDisagrees && *ended == Ended::Compensated {
            return Err("the audit does not like it".to_owned());
        }
        let all = LockFilter { tenant: Tenant::default(), saga: None, entity: None, after: None, limit: 9 };
        let locks = world.store.locks(&all).await.map_err(|error| error.to_string())?;
        if !locks.is_empty() {
            return Err(format!("{ended:?}, and it still has {locks:?}"));
        }
        if (stock, sold, net) == expected {
            return Ok(());
        }
        Err(format!("{ended:?}, and stock, sold and charged are {:?}", (stock, sold, net)))
    }
}

fn found_in(failures: &Failures, disturbance: &str) -> bool {
    failures.broken.iter().any(|broken| broken.disturbance.contains(disturbance))
}

/// Whichever branch comes first, and whatever crashes: nothing is done twice, and nothing stays that was undone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saga_with_a_group_survives_everything() {
    let report = explore(Shop::AtOnce).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for boundary in ["behind take-out", "behind charge", "before confirm", "before charge:undo", "behind take-out:undo"]
    {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
    assert!(report.unreached() < report.runs() / 4, "of {} runs {} came to nothing", report.runs(), report.unreached());
}

/// It wakes, and goes on with its word, in whatever life of the process that comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saga_that_waits_survives_everything() {
    let report = explore(Shop::Waiting).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report} {:#?}", report.boundaries());
    for boundary in [
        "behind the record of rest as done",
        "behind the record of word as done",
        "before charge",
        "behind charge:undo",
    ] {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

/// Whatever crashes, and wherever: no lock is left when it has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_a_saga_with_a_semantic_lock_survives_everything() {
    let report = explore(Shop::Locking).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report} {:#?}", report.boundaries());
    for boundary in [
        "before the request for a semantic lock",
        "behind the request for a semantic lock",
        "behind the record of till as done",
        "before charge:undo",
    ] {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

/// Whatever crashes, whichever of the two sagas it is of: they end together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_a_sub_saga_survives_everything_with_its_saga() {
    let report = explore(Shop::BySubSaga).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for boundary in ["before charge", "behind charge", "before charge:undo", "before confirm"] {
        let is_known = |known: &String| known.contains(boundary);
        assert!(report.boundaries().iter().any(is_known), "{boundary}: {:#?}", report.boundaries());
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

/// Who pauses it and is gone has it paused; who comes next resumes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saga_that_is_held_up_survives_everything() {
    let report = explore(Shop::HeldUp).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report} {:#?}", report.boundaries());
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

/// What stands in the arm that this input does not take is named, not disturbed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_choice_is_made_once_whatever_crashes() {
    let report = explore(Shop::Choosing).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    assert_eq!(report.left_out(), ["waive"]);
    for boundary in ["behind the transaction of take-out", "before charge", "before charge:undo"] {
        assert!(
            report.boundaries().iter().any(|known| known.contains(boundary)),
            "{boundary}: {:#?}",
            report.boundaries()
        );
    }
    assert!(report.to_string().contains("left out: waive"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saga_with_lists_survives_everything() {
    let report = explore(Shop::Each).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for boundary in [
        "behind the record of take-out#0 as done",
        "behind the transaction of take-out#3",
        "behind the record of charge#2 as done",
        "behind the record of charge as done",
        "before charge:undo",
        "behind the transaction of take-out#1:undo",
    ] {
        assert!(
            report.boundaries().iter().any(|known| known.contains(boundary)),
            "{boundary}: {:#?}",
            report.boundaries()
        );
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
    assert!(report.unreached() < report.runs() / 4, "of {} runs {} came to nothing", report.runs(), report.unreached());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_saga_survives_everything() {
    let report = explore(Shop::Sound).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for boundary in [
        "before the start",
        "behind the start",
        "before take-out",
        "behind take-out",
        "before the transaction of take-out",
        "behind the transaction of take-out",
        "before charge",
        "behind charge",
        "before the record of charge as done",
        "behind the record of charge as done",
        "before charge:undo",
        "behind charge:undo",
        "behind the record of charge:undo as done",
        "behind the transaction of take-out:undo",
        "behind the claim of take-out",
    ] {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
    assert_eq!(report.crashes() as usize, report.boundaries().len());
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_does_not_honour_keys_is_found() {
    let failures = explore(Shop::GatewayForgets).await.unwrap_err();
    assert!(found_in(&failures, "crash behind charge"), "{failures}");
    assert!(found_in(&failures, "run twice: behind charge"), "{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_is_not_idempotent_is_found() {
    let failures = explore(Shop::StockByHand).await.unwrap_err();
    assert!(found_in(&failures, "crash behind take-out"), "{failures}");
    assert!(found_in(&failures, "run twice: behind take-out:undo"), "{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_is_asked_about_the_way_back_too() {
    let failures = explore(Shop::AuditDisagrees).await.unwrap_err();
    assert!(failures.broken.iter().all(|broken| broken.problem.contains("does not like it")), "{failures}");
}
