use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use saga_core::env::BoxFuture;

use super::timers::Timers;
use crate::sim::Random;

/// A process of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub(super) u16);

impl ProcessId {
    /// The process by its number; the world itself is 0.
    pub fn index(self) -> u16 {
        self.0
    }
}

/// What the executor, the environments and the control share.
#[derive(Debug)]
pub(super) struct Core {
    state: Mutex<State>,
    pub(super) woken: Arc<WakeQueue>,
}

pub(super) struct State {
    /// Virtual time in nanoseconds.
    pub(super) now: u64,
    pub(super) random: Random,
    pub(super) timers: Timers,
    pub(super) processes: Vec<Process>,
    pub(super) spawned: Vec<(ProcessId, BoxFuture<'static, ()>)>,
    pub(super) killed: Vec<ProcessId>,
    pub(super) resumed: Vec<TaskRef>,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) is_alive: bool,
    pub(super) is_paused: bool,
    /// What its clock showed at the moment zero.
    pub(super) origin: u64,
    pub(super) polls: u64,
    pub(super) kill_at: Option<u64>,
    /// What is ready while the process is stopped.
    pub(super) parked: Vec<TaskRef>,
    pub(super) watchers: Vec<Waker>,
}

/// Names a task as long as it exists.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskRef {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl Core {
    pub(super) fn new(random: Random) -> Self {
        let state = State {
            now: 0,
            random,
            timers: Timers::default(),
            processes: Vec::new(),
            spawned: Vec::new(),
            killed: Vec::new(),
            resumed: Vec::new(),
        };
        Self { state: Mutex::new(state), woken: Arc::default() }
    }

    /// No user code runs under the lock, so a panic never leaves it half changed.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn kill(&mut self, id: ProcessId) {
        let process = &mut self.processes[usize::from(id.0)];
        if !process.is_alive {
            return;
        }
        process.is_alive = false;
        process.parked.clear();
        self.killed.push(id);
        for watcher in process.watchers.drain(..) {
            watcher.wake();
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("now", &self.now)
            .field("processes", &self.processes)
            .field("spawned", &self.spawned.len())
            .finish_non_exhaustive()
    }
}

/// Tasks that were woken since the last turn, in order.
#[derive(Debug, Default)]
pub(super) struct WakeQueue {
    tasks: Mutex<Vec<TaskRef>>,
}

impl WakeQueue {
    pub(super) fn push(&self, task: TaskRef) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    pub(super) fn drain_into(&self, ready: &mut Vec<TaskRef>) {
        ready.append(&mut self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Puts its task into the queue, once until it is polled.
#[derive(Debug)]
pub(super) struct TaskWaker {
    pub(super) task: TaskRef,
    pub(super) is_queued: AtomicBool,
    pub(super) queue: Arc<WakeQueue>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            self.queue.push(self.task);
        }
    }
}
