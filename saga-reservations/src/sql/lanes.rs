//! Operations that wait for the transaction in front of them, and then share the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::task::Task;
use crate::ReservationsError;
use crate::book::{Reservation, ResourceName};

/// The most operations of one transaction.
pub(super) const SHARED_MAX: usize = 128;

/// For which operations a lane is: those on exactly these resources, or on any if there is none.
pub(super) type Lane = Vec<ResourceName>;

pub(super) type Answer = Result<Reservation, ReservationsError>;

/// A task, and where its answer goes.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) task: Task,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// The lanes in which a task works. A clone is the same.
///
/// A lane has the operations of callers that wait: as many as there are callers.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanes(Arc<Mutex<BTreeMap<Lane, Vec<Waiter>>>>);

/// A lane in which a task works. When it is dropped before its end, those who wait are told.
#[derive(Debug)]
pub(super) struct Running {
    lanes: Lanes,
    lane: Lane,
    is_done: bool,
}

impl Lanes {
    /// Puts an operation at the end of a lane. The caller must work in the lane that it gets: no task does.
    pub(super) fn enter(&self, lane: Lane, waiter: Waiter) -> Option<Running> {
        let mut lanes = self.lanes();
        if let Some(waiting) = lanes.get_mut(&lane) {
            waiting.push(waiter);
            return None;
        }
        lanes.insert(lane.clone(), vec![waiter]);
        Some(Running { lanes: self.clone(), lane, is_done: false })
    }

    fn lanes(&self) -> MutexGuard<'_, BTreeMap<Lane, Vec<Waiter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Whether the operations wait for locks, and only those on the same resources are together.
    pub(super) fn is_patient(&self) -> bool {
        !self.lane.is_empty()
    }

    /// The next operations, in the order in which they came; none if nothing waits, and then the lane is closed. An operation
    /// whose caller is gone is left out.
    pub(super) fn next(&mut self) -> Vec<Waiter> {
        let mut lanes = self.lanes.lanes();
        let Some(waiting) = lanes.get_mut(&self.lane) else { return Vec::new() };
        waiting.retain(|waiter| !waiter.answer.is_closed());
        if waiting.is_empty() {
            lanes.remove(&self.lane);
            self.is_done = true;
            return Vec::new();
        }
        // One operation of a key: then each state of a reservation is written, also for the triggers of an application.
        let mut keys = BTreeSet::new();
        waiting.extract_if(.., |waiter| keys.len() < SHARED_MAX && keys.insert(waiter.task.key().clone())).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_done {
            self.lanes.lanes().remove(&self.lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::{Action, Operation, ReservationKey};

    fn waiter(key: &str) -> (Waiter, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        let operation = Operation::new(ReservationKey::new(key).unwrap(), Action::Release { token: None });
        (Waiter { task: Task::Operation(operation), answer }, answered)
    }

    fn keys(waiters: &[Waiter]) -> Vec<&str> {
        waiters.iter().map(|waiter| waiter.task.key().as_str()).collect()
    }

    #[test]
    fn what_waits_comes_in_its_order_and_the_lane_closes_behind_it() {
        let lanes = Lanes::default();
        let ((one, _one), (two, _two), (three, _three)) = (waiter("one"), waiter("two"), waiter("three"));
        let mut running = lanes.enter(Vec::new(), one).unwrap();
        assert!(lanes.enter(Vec::new(), two).is_none(), "a task works in the lane");
        let (again, _again) = waiter("one");
        assert!(lanes.enter(Vec::new(), again).is_none());
        assert_eq!(keys(&running.next()), ["one", "two"]);
        assert_eq!(keys(&running.next()), ["one"], "a key has one operation in a transaction");
        assert!(lanes.enter(Vec::new(), three).is_none());
        assert_eq!(keys(&running.next()), ["three"]);
        assert!(running.next().is_empty());
        // The next one opens the lane again, and the end of the task before does not close it.
        let (four, _four) = waiter("four");
        let mut next = lanes.enter(Vec::new(), four).unwrap();
        drop(running);
        assert_eq!(keys(&next.next()), ["four"]);
    }

    #[test]
    fn a_transaction_has_so_many_operations_and_none_of_callers_that_are_gone() {
        let lanes = Lanes::default();
        let (gone, receiver) = waiter("gone");
        drop(receiver);
        let mut running = lanes.enter(Vec::new(), gone).unwrap();
        let mut waiting = Vec::new();
        for number in 0..=SHARED_MAX {
            let (waiter, answered) = waiter(&number.to_string());
            waiting.push(answered);
            assert!(lanes.enter(Vec::new(), waiter).is_none());
        }
        assert_eq!(running.next().len(), SHARED_MAX);
        assert_eq!(running.next().len(), 1);
    }

    #[test]
    fn callers_are_told_of_a_task_that_ended() {
        let lanes = Lanes::default();
        let (one, mut answered) = waiter("one");
        drop(lanes.enter(Vec::new(), one));
        assert!(matches!(answered.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    }
}
