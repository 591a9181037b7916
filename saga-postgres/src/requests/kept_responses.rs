//! Requests whose responses are looked up together. Those that arrive while a statement runs wait for the next one, so that many replays
//! cost one round trip, and a lone one does not wait.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saga_core::store::{Admission, KeyedRequest};
use tokio::sync::oneshot;

/// Requests whose responses are looked up together.
#[derive(Default)]
pub(crate) struct KeptResponses {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    is_read: bool,
}

/// A request that waits for its turn.
pub(crate) struct Waiting {
    pub(crate) request: KeyedRequest,
    turn: oneshot::Sender<Turn>,
}

/// What a waiting request is told.
pub(crate) enum Turn {
    /// Its response, if one is kept.
    Answered(Option<Admission<()>>),
    /// It looks up itself and those that wait behind it.
    Reads(Reading),
}

impl Waiting {
    /// Answers it, if its caller has not left.
    pub(crate) fn answer(self, answer: Option<Admission<()>>) {
        drop(self.turn.send(Turn::Answered(answer)));
    }
}

/// A request that is to be looked up.
pub(crate) enum Entered {
    Reads(Reading),
    /// A statement runs already.
    Waits(oneshot::Receiver<Turn>),
}

impl KeptResponses {
    pub(crate) fn enter(responses: &Arc<Self>, request: &KeyedRequest) -> Entered {
        let mut queue = responses.lock();
        if !std::mem::replace(&mut queue.is_read, true) {
            return Entered::Reads(Reading(Arc::clone(responses)));
        }
        let (turn, waits) = oneshot::channel();
        queue.waiting.push_back(Waiting { request: request.clone(), turn });
        Entered::Waits(waits)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one that reads. When it is dropped, the next one reads.
pub(crate) struct Reading(Arc<KeptResponses>);

impl Reading {
    /// Those that have waited longest.
    pub(crate) fn take(&self, limit: usize) -> Vec<Waiting> {
        let mut queue = self.0.lock();
        let count = queue.waiting.len().min(limit);
        queue.waiting.drain(..count).collect()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        let Some(next) = queue.waiting.pop_front() else {
            queue.is_read = false;
            return;
        };
        drop(queue);
        // If its caller has left, this drops the turn, which goes to the one behind it.
        drop(next.turn.send(Turn::Reads(Self(Arc::clone(&self.0)))));
    }
}

#[cfg(test)]
mod tests {
    use saga_core::Tenant;
    use saga_core::store::IdempotencyKey;

    use super::*;

    fn request(key: &str) -> KeyedRequest {
        let key = IdempotencyKey::new(Tenant::default(), "ada", key).unwrap();
        KeyedRequest { key, fingerprint: [0; 32], ttl: std::time::Duration::from_hours(24) }
    }

    fn reads(entered: Entered) -> Reading {
        match entered {
            Entered::Reads(reading) => reading,
            Entered::Waits(_) => panic!("it waits"),
        }
    }

    fn waits(entered: Entered) -> oneshot::Receiver<Turn> {
        match entered {
            Entered::Waits(turn) => turn,
            Entered::Reads(_) => panic!("it reads"),
        }
    }

    #[test]
    fn a_caller_that_leaves_gives_its_turn_to_the_one_behind_it() {
        let responses = Arc::new(KeptResponses::default());
        let enter = |key: &str| KeptResponses::enter(&responses, &request(key));
        let first = reads(enter("k-1"));
        let (second, third, fourth) = (waits(enter("k-2")), waits(enter("k-3")), waits(enter("k-4")));
        drop(second);
        drop(first);
        // It had its turn, and leaves without taking it.
        drop(third);
        let mut fourth = fourth;
        assert!(matches!(fourth.try_recv(), Ok(Turn::Reads(_))));
        reads(enter("k-5"));
    }

    #[test]
    fn the_one_that_reads_takes_those_that_wait() {
        let responses = Arc::new(KeptResponses::default());
        let enter = |key: &str| KeptResponses::enter(&responses, &request(key));
        let first = reads(enter("k-1"));
        let mut second = waits(enter("k-2"));
        let mut third = waits(enter("k-3"));
        for taken in first.take(1) {
            taken.answer(Some(Admission::OtherRequest));
        }
        assert!(matches!(second.try_recv(), Ok(Turn::Answered(Some(Admission::OtherRequest)))));
        assert!(third.try_recv().is_err());
        drop(first);
        assert!(matches!(third.try_recv(), Ok(Turn::Reads(_))));
    }
}
