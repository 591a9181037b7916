use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saga_core::{StepContext, StepError};
use tokio::sync::Semaphore;

/// What happens in one call of a step or of a compensation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It works.
    Ok,
    /// A business failure.
    Reject,
    /// An error, and nothing happened outside.
    Fail,
    /// An error that is known to have done nothing outside.
    NotSent,
    /// It happened outside, and the answer is lost.
    LoseAnswer,
    /// A panic.
    Panic,
    /// It awaits for ever.
    Hang,
    /// It waits for this gate, and then works.
    Gate(&'static str),
    /// It waits for this gate, and is then rejected.
    GateThenReject(&'static str),
    /// It ends the transaction that it was given.
    EndTransaction,
}

/// The outside world of the sagas: it remembers every call, keeps a book by idempotency key as other people's services
/// do, and does as it was told. A clone is the same world.
#[derive(Clone, Default)]
pub struct World {
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    acts: BTreeMap<String, VecDeque<Act>>,
    calls: Vec<String>,
    /// What happened, by the key that it was asked for with.
    effects: BTreeMap<String, i64>,
    /// How often one key had an effect; the book honours keys, so it is never above one.
    undone: BTreeSet<String>,
    gates: BTreeMap<&'static str, Arc<Semaphore>>,
}

impl World {
    /// A world in which everything works.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the next calls under a step key do, one after the other. Calls for which nothing is said work.
    pub fn plan(&self, step_key: &str, acts: impl IntoIterator<Item = Act>) {
        self.lock().acts.entry(step_key.to_owned()).or_default().extend(acts);
    }

    /// What every call under a step key does from now on, as often as it is made.
    pub fn always(&self, step_key: &str, act: Act) {
        self.lock().acts.insert(step_key.to_owned(), std::iter::repeat_n(act, 1_000).collect());
    }

    /// From now on it works.
    pub fn repair(&self, step_key: &str) {
        self.lock().acts.remove(step_key);
    }

    /// Opens a gate for whoever waits for it, now and later.
    pub fn open(&self, gate: &'static str) {
        self.gate(gate).add_permits(1_000);
    }

    /// Every call so far, by its key, in order.
    pub fn calls(&self) -> Vec<String> {
        self.lock().calls.clone()
    }

    /// How often this key was called.
    pub fn calls_of(&self, key: &str) -> usize {
        self.lock().calls.iter().filter(|call| *call == key).count()
    }

    /// What stands outside under the key of a step: 0 where nothing happened or it was undone.
    pub fn standing(&self, step_key: &str) -> i64 {
        self.lock().effects.get(step_key).copied().unwrap_or(0)
    }

    /// Notes the call, and does what was planned for it up to where the outside world would act. Answers what is left to
    /// the step.
    ///
    /// # Errors
    /// The planned one.
    ///
    /// # Panics
    /// Where it was planned.
    pub async fn enter(&self, ctx: &StepContext) -> Result<Act, StepError> {
        let act = {
            let mut book = self.lock();
            book.calls.push(ctx.key().to_owned());
            book.acts.get_mut(ctx.key()).and_then(VecDeque::pop_front).unwrap_or(Act::Ok)
        };
        match act {
            Act::Ok | Act::LoseAnswer | Act::EndTransaction => Ok(act),
            Act::Reject => Err(StepError::reject("declined")),
            Act::Fail => Err(StepError::retry("connection reset")),
            Act::NotSent => Err(StepError::not_sent("connection refused")),
            Act::Panic => panic!("as planned"),
            Act::Hang => pending().await,
            Act::Gate(gate) => {
                self.pass(gate).await;
                Ok(Act::Ok)
            }
            Act::GateThenReject(gate) => {
                self.pass(gate).await;
                Err(StepError::reject("declined"))
            }
        }
    }

    /// Something happens outside, once a key.
    pub fn happen(&self, key: &str, amount: i64) {
        self.lock().effects.entry(key.to_owned()).or_insert(amount);
    }

    /// Takes back what happened under the key of a step. The answer under one undo key is always the same: where there
    /// was nothing to undo, there is nothing to undo under it later either.
    pub fn take_back(&self, undo_key: &str, step_key: &str) {
        let mut book = self.lock();
        if book.undone.insert(undo_key.to_owned())
            && let Some(effect) = book.effects.get_mut(step_key)
        {
            *effect = 0;
        }
    }

    async fn pass(&self, gate: &'static str) {
        let gate = self.gate(gate);
        gate.acquire().await.expect("a gate is never taken away").forget();
    }

    fn gate(&self, gate: &'static str) -> Arc<Semaphore> {
        Arc::clone(self.lock().gates.entry(gate).or_insert_with(|| Arc::new(Semaphore::new(0))))
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
