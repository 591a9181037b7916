//! Charges of accounts, which are called one at a time for each account, and the runtime that they run on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::engine::{SagaStatus, SemanticLocksFilter, StepStatus};
use saga_core::env::TokioEnvironment;
use saga_core::memory::MemoryStore;
use saga_core::{Entity, Locked, Runtime, Saga, SagaHandle, State, StepError, StepPhase, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// Commits wake the sagas that get a lock: they do not wait for a poll.
pub(crate) const POLL: Duration = Duration::from_secs(10);

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub(crate) id: u32,
    pub(crate) account: String,
    /// What each attempt does, with the last one for all that follow.
    pub(crate) attempts: Vec<Act>,
}

/// What an attempt of a charge does.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Act {
    Succeed,
    /// It waits until the test lets it go on.
    Hold,
    Reject,
    /// It fails, and certainly had no effect.
    NotSent,
    /// It fails, and may have had an effect.
    Unknown,
    Stick,
}

impl Charge {
    pub(crate) fn new(id: u32, account: &str, attempts: &[Act]) -> Self {
        Self { id, account: account.to_owned(), attempts: attempts.to_vec() }
    }
}

/// The bank: it notes its calls, and whether two of one account ever overlapped.
#[derive(Clone, Default)]
pub(crate) struct Bank(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<Accounts>,
    go: Notify,
}

#[derive(Default)]
struct Accounts {
    calls: Vec<String>,
    under_way: BTreeSet<String>,
    highest: BTreeMap<String, u64>,
}

/// A call that is under way.
struct Call<'a>(&'a Bank, String);

impl Bank {
    fn begin(&self, what: &str, charge: &Charge, token: u64) -> Call<'_> {
        let mut state = self.0.state.lock().unwrap();
        state.calls.push(format!("{what} {}", charge.id));
        assert!(state.under_way.insert(charge.account.clone()), "two calls for {} at once", charge.account);
        let highest = state.highest.entry(charge.account.clone()).or_default();
        assert!(token >= *highest, "the token {token} of {} is below {highest}", charge.account);
        *highest = token;
        Call(self, charge.account.clone())
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.0.state.lock().unwrap().calls.clone()
    }

    fn calls_of(&self, charge: u32) -> usize {
        self.calls().iter().filter(|call| **call == format!("charge {charge}")).count()
    }

    /// Lets one call that is held go on.
    pub(crate) fn let_one_go(&self) {
        self.0.go.notify_one();
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.0.state.lock().unwrap().under_way.remove(&self.1);
    }
}

#[saga_step(compensate = give_back, lock = |charge| Entity::new("account", &charge.account))]
pub(crate) async fn charge(charge: Charge, locked: Locked, State(bank): State<Bank>) -> Result<u64, StepError> {
    let earlier = bank.calls_of(charge.id);
    let _call = bank.begin("charge", &charge, locked.token());
    match charge.attempts.get(earlier).or(charge.attempts.last()) {
        Some(Act::Hold) => bank.0.go.notified().await,
        Some(Act::Reject) => return Err(StepError::reject("refused")),
        Some(Act::NotSent) => return Err(StepError::not_sent("the bank is closed")),
        Some(Act::Unknown) => return Err(StepError::retry("no answer")),
        Some(Act::Stick) => return Err(StepError::stuck("ask a person")),
        Some(Act::Succeed) | None => {}
    }
    Ok(locked.token())
}

#[saga_compensation]
pub(crate) async fn give_back(
    charge: Charge,
    charged: Option<u64>,
    locked: Locked,
    State(bank): State<Bank>,
) -> Result<(), StepError> {
    let _call = bank.begin("give back", &charge, locked.token());
    assert!(charged.is_none_or(|token| token < locked.token()), "the undo has a lock of its own");
    Ok(())
}

/// It refuses charges with odd ids.
#[saga_step]
pub(crate) async fn ship(charge: Charge) -> Result<(), StepError> {
    if charge.id.is_multiple_of(2) { Ok(()) } else { Err(StepError::reject("no truck")) }
}

pub(crate) fn charges() -> Saga<MemoryStore, Charge> {
    Saga::named("charges").input::<Charge>().step::<charge>().build().unwrap()
}

pub(crate) struct World {
    pub(crate) runtime: Runtime<MemoryStore>,
    pub(crate) bank: Bank,
}

pub(crate) async fn world(saga: &Saga<MemoryStore, Charge>) -> World {
    world_of(&[saga]).await
}

pub(crate) async fn world_of(sagas: &[&Saga<MemoryStore, Charge>]) -> World {
    let store = MemoryStore::with_environment(Arc::new(TokioEnvironment::current().unwrap()));
    let bank = Bank::default();
    let builder = Runtime::builder(store).settings(|set| (set.poll_interval, set.member_ttl) = (POLL, 6 * POLL));
    let builder = sagas.iter().fold(builder, |builder, saga| builder.saga(saga));
    let runtime = builder.state(bank.clone()).start().await.unwrap();
    World { runtime, bank }
}

impl World {
    pub(crate) async fn status(&self, key: &str) -> SagaStatus {
        self.runtime.status(key).await.unwrap().unwrap()
    }

    /// Waits until the charge of the saga is like this.
    pub(crate) async fn until(&self, key: &str, is_there: impl Fn(&StepStatus) -> bool) -> StepStatus {
        loop {
            let status = self.status(key).await;
            let step = status.steps.iter().find(|step| step.step == "charge").unwrap();
            if is_there(step) {
                return step.clone();
            }
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn until_it_waits(&self, key: &str) -> StepStatus {
        self.until(key, |step| step.lock.as_ref().is_some_and(|lock| !lock.granted)).await
    }

    /// Starts three charges of one account, one after the other. The first is called and held, the others wait.
    pub(crate) async fn hold_for_three(&self, saga: &Saga<MemoryStore, Charge>) -> Vec<SagaHandle<MemoryStore>> {
        let mut running = Vec::new();
        for id in 1..=3 {
            let key = format!("o-{id}");
            running.push(self.runtime.start(saga, &key, Charge::new(id, "ada", &[Act::Hold])).await.unwrap());
            if id == 1 {
                self.until_called(1).await;
            } else {
                self.until_it_waits(&key).await;
            }
        }
        running
    }

    /// Waits until the bank was called so often.
    pub(crate) async fn until_called(&self, calls: usize) {
        while self.bank.calls().len() < calls {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn until_it_failed(&self, key: &str) -> StepStatus {
        self.until(key, |step| step.error.is_some() && step.phase == StepPhase::Started && step.due_at.is_some()).await
    }

    /// Nothing of a lock is left when every saga has ended.
    pub(crate) async fn ends_without_locks(self) {
        let left = self.runtime.admin().query().semantic_locks(SemanticLocksFilter::default()).await.unwrap();
        assert_eq!(left, []);
        self.runtime.shutdown().await;
    }
}
