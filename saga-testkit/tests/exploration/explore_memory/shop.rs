//! A shop whose sagas are explored, sound or with a flaw.

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
use saga_testkit::explore::{Ended, Explore, Explored};
use serde::{Deserialize, Serialize};

/// A gateway that honours keys, and bars those that were refunded.
#[derive(Clone, Default)]
pub(super) struct Gateway {
    pub(super) book: Arc<Mutex<Book>>,
    /// Whether it forgets that it has seen a key.
    pub(super) forgets: bool,
}

#[derive(Default)]
pub(super) struct Book {
    pub(super) charged: BTreeMap<String, i64>,
    pub(super) refunded: BTreeSet<String>,
    pub(super) net: i64,
}

#[saga_step(compensate = put_back)]
pub(super) async fn take_out(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
    conn.add("stock", -amount)?;
    Ok(())
}

#[saga_compensation]
pub(super) async fn put_back(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
    conn.add("stock", amount)?;
    Ok(())
}

/// An undo that was written for a world without repetition: it writes outside of its transaction.
#[saga_step(name = "take-out", compensate = put_back_by_hand)]
pub(super) async fn take_out_by_hand(
    ctx: &StepContext,
    amount: i64,
    State(store): State<Shelf>,
) -> Result<(), StepError> {
    let _ = ctx;
    *store.0.lock().unwrap() -= amount;
    Ok(())
}

#[saga_compensation]
pub(super) async fn put_back_by_hand(
    ctx: &StepContext,
    amount: i64,
    State(store): State<Shelf>,
) -> Result<(), StepError> {
    let _ = ctx;
    *store.0.lock().unwrap() += amount;
    Ok(())
}

#[saga_step(name = "take-out", compensate = lose)]
pub(super) async fn take_out_for_ever(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
    conn.add("stock", -amount)?;
    Ok(())
}

#[saga_compensation]
pub(super) async fn lose(_conn: &mut MemoryConn, _amount: i64) -> Result<(), StepError> {
    Err(StepError::reject("the shelf is full"))
}

#[derive(Clone, Default)]
pub(super) struct Shelf(pub(super) Arc<Mutex<i64>>);

#[saga_step(compensate = refund, timeout = "2s")]
pub(super) async fn charge(ctx: &StepContext, amount: i64, State(gateway): State<Gateway>) -> Result<i64, StepError> {
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
pub(super) async fn refund(
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
pub(super) async fn waive(_ctx: &StepContext, _amount: i64) -> Result<(), StepError> {
    Ok(())
}

#[saga_step]
pub(super) async fn confirm(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
    conn.add("sold", amount)?;
    Ok(())
}

#[derive(Serialize, Deserialize)]
pub(super) struct Word(pub(super) i64);

impl Signal for Word {
    const NAME: &'static str = "word";
}

pub(super) struct World {
    pub(super) store: Arc<MemoryStore>,
    pub(super) gateway: Gateway,
    pub(super) shelf: Shelf,
}

pub(super) struct Paying;

impl SubSaga for Paying {
    const NAME: &'static str = "paying";
    type Input = i64;
    type Output = i64;
}

pub(super) struct Till;

impl SemanticLock for Till {
    const NAME: &'static str = "till";
}

/// Which of the ways to be wrong, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shop {
    Sound,
    GatewayForgets,
    StockByHand,
    AuditDisagrees,
    AuditPanics,
    /// What was taken out is never put back.
    UndoRejects,
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
            Self::UndoRejects => saga.step::<take_out_for_ever>(),
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
        assert!(*self != Self::AuditPanics || *ended == Ended::Completed, "the audit asserts");
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
