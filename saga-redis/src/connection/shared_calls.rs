//! Calls of one script that are made at the same time share one call of Redis: what a call costs besides its work is most of it.

use std::sync::{Arc, Mutex, PoisonError};

use saga_core::__private::Batches;
use tokio::time::Instant;

use super::connection::{Answer, Connection};
use super::failure::{Unsent, is_refused};
use crate::error::LockError;
use crate::keys::SLOTS;
use crate::scripts::Call;

/// The most calls that share one: Redis does nothing else meanwhile.
const CALLS_MAX: usize = 64;

/// The most shared calls at once: while Redis works on one, the answer to another is read.
const SHARED_CALLS_MAX: usize = 2;

/// The calls of one script, which answers several at once. A call that comes alone waits for nothing.
pub(crate) struct SharedCalls {
    connection: Arc<Connection>,
    /// Calls for the same server: of a slot in a cluster, and all of a single server.
    batches: Vec<Batches<Asked, Result<Answer, Unsent>>>,
    /// When Redis last failed to answer in time, and the error.
    timed_out: Mutex<Option<(Instant, Unsent)>>,
}

#[derive(Clone)]
struct Asked {
    call: Arc<Call>,
    asked_at: Instant,
}

impl SharedCalls {
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        let servers = if connection.is_cluster() { SLOTS } else { 1 };
        Self {
            connection: Arc::clone(connection),
            batches: (0..servers).map(|_| Batches::new(CALLS_MAX, SHARED_CALLS_MAX)).collect(),
            timed_out: Mutex::default(),
        }
    }

    /// Makes a call whose keys are of this slot. A failed call may have taken effect.
    pub(crate) async fn call(&self, slot: u16, call: Call) -> Result<Answer, LockError> {
        let operation = call.operation;
        let asked = Asked { call: Arc::new(call), asked_at: Instant::now() };
        let batches = &self.batches[usize::from(slot) % self.batches.len()];
        // In a box, since few callers work for the others: the future of each caller is moved into a box itself, and is small so.
        let answer = batches.ask(asked, |asked| Box::pin(self.answer(asked))).await;
        answer.map_err(|unsent| unsent.into_error(operation, self.connection.address()))
    }

    /// As [`call`](Self::call), and fails if too few replicas confirmed what the script wrote. `counts` says of which answers
    /// it is asked.
    pub(crate) async fn call_confirmed(
        &self,
        slot: u16,
        call: Call,
        counts: impl FnOnce(&[String]) -> bool,
    ) -> Result<Answer, LockError> {
        let operation = call.operation;
        self.connection.confirmed(operation, self.call(slot, call).await?, counts)
    }

    async fn answer(&self, asked: Vec<Asked>) -> Vec<Result<Answer, Unsent>> {
        let calls: Vec<Arc<Call>> = asked.iter().map(|asked| Arc::clone(&asked.call)).collect();
        if let Some(unsent) = asked.last().and_then(|last| self.timed_out_since(last.asked_at)) {
            // Each would wait for all those before it.
            return failed(&calls, &unsent);
        }
        match self.connection.call_all(&calls).await {
            Ok(answers) if answers.len() == calls.len() => answers.into_iter().map(Ok).collect(),
            Ok(answers) => failed(&calls, &Unsent::Unfit(format!("it has {} answers to {} calls", answers.len(), calls.len()))),
            Err(Unsent::Error(error)) if calls.len() > 1 && is_refused(&error) => self.answer_each(calls).await,
            Err(unsent) => {
                if let Unsent::Error(error) = &unsent && error.is_timeout() {
                    *self.timed_out.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), unsent.clone()));
                }
                failed(&calls, &unsent)
            }
        }
    }

    /// One by one: a call that Redis refuses, for a key that is of another type perhaps, is no reason to refuse the others.
    async fn answer_each(&self, calls: Vec<Arc<Call>>) -> Vec<Result<Answer, Unsent>> {
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            let answer = self.connection.call_all(&[call]).await;
            answers.push(answer.and_then(|mut answers| answers.pop().ok_or_else(|| Unsent::Unfit("it has no answer".to_owned()))));
        }
        answers
    }

    fn timed_out_since(&self, asked_at: Instant) -> Option<Unsent> {
        let last = self.timed_out.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(at, _)| *at >= asked_at).map(|(_, unsent)| unsent.clone())
    }
}

fn failed(calls: &[Arc<Call>], unsent: &Unsent) -> Vec<Result<Answer, Unsent>> {
    calls.iter().map(|_| Err(unsent.clone())).collect()
}
