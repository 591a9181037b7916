//! Calls of one script that are made at the same time share one call of Redis: what a call costs besides its work is most of it.

use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// The calls of each slot in a cluster, and all calls of a single server.
    lanes: Vec<Lane>,
}

/// Calls for the same server.
struct Lane {
    batches: Batches<Asked, Result<Answer, Unsent>>,
    /// When the server last failed to answer in time, and the error.
    timed_out: Mutex<Option<(Instant, Unsent)>>,
}

#[derive(Clone)]
struct Asked {
    call: Arc<Call>,
    asked_at: Instant,
}

impl SharedCalls {
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        let lanes = if connection.is_cluster() { SLOTS } else { 1 };
        let lane = |_| Lane { batches: Batches::new(CALLS_MAX, SHARED_CALLS_MAX), timed_out: Mutex::default() };
        Self { connection: Arc::clone(connection), lanes: (0..lanes).map(lane).collect() }
    }

    /// Makes a call whose keys are of this slot. A failed call may have taken effect.
    pub(crate) async fn call(&self, slot: u16, call: Call) -> Result<Answer, LockError> {
        let operation = call.operation;
        let asked = Asked { call: Arc::new(call), asked_at: Instant::now() };
        let lane = &self.lanes[usize::from(slot) % self.lanes.len()];
        // The work is in a box: few callers work for the others, and the future of each caller is moved into a box of its own.
        let answer = lane.batches.ask(asked, |asked| Box::pin(lane.answer(&self.connection, asked))).await;
        answer.map_err(|unsent| unsent.into_error(operation, self.connection.address()))
    }

    /// Makes a call as [`call`](Self::call) does. It fails if too few replicas confirmed an answer that `counts` selects.
    pub(crate) async fn call_confirmed(
        &self,
        slot: u16,
        call: Call,
        counts: impl FnOnce(&[String]) -> bool,
    ) -> Result<Answer, LockError> {
        let operation = call.operation;
        self.connection.confirmed(operation, self.call(slot, call).await?, counts)
    }
}

impl Lane {
    async fn answer(&self, connection: &Connection, asked: Vec<Asked>) -> Vec<Result<Answer, Unsent>> {
        if let Some(unsent) = asked.last().and_then(|last| self.timed_out_since(last.asked_at)) {
            // Each would wait until those before it have timed out.
            return asked.iter().map(|_| Err(unsent.clone())).collect();
        }
        let calls: Vec<Arc<Call>> = asked.into_iter().map(|asked| asked.call).collect();
        match connection.call_all(&calls).await {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            Err(Unsent::Error(error)) if calls.len() > 1 && is_refused(&error) => answer_each(connection, &calls).await,
            Err(unsent) => {
                self.note_timeout(&unsent);
                calls.iter().map(|_| Err(unsent.clone())).collect()
            }
        }
    }

    fn note_timeout(&self, unsent: &Unsent) {
        if matches!(unsent, Unsent::Error(error) if error.is_timeout()) {
            *self.timed_out() = Some((Instant::now(), unsent.clone()));
        }
    }

    fn timed_out_since(&self, asked_at: Instant) -> Option<Unsent> {
        self.timed_out().as_ref().filter(|(at, _)| *at >= asked_at).map(|(_, unsent)| unsent.clone())
    }

    fn timed_out(&self) -> MutexGuard<'_, Option<(Instant, Unsent)>> {
        self.timed_out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One by one: what Redis refuses for one call, such as a key of another type, is no reason to refuse the others.
async fn answer_each(connection: &Connection, calls: &[Arc<Call>]) -> Vec<Result<Answer, Unsent>> {
    let mut all = Vec::with_capacity(calls.len());
    for call in calls {
        match connection.call_all(slice::from_ref(call)).await {
            Ok(answers) => all.extend(answers.into_iter().map(Ok)),
            Err(Unsent::Error(error)) if is_refused(&error) => all.push(Err(Unsent::Error(error))),
            Err(unsent) => {
                // It does not answer, and each of the rest would wait for that.
                all.resize_with(calls.len(), || Err(unsent.clone()));
                break;
            }
        }
    }
    all
}
