use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use saga_core::env::{BoxFuture, Environment};

use super::control::Control;
use super::core::{Core, ProcessId, TaskRef, TaskWaker};
use super::environment::SimEnvironment;
use crate::sim::Random;

/// Runs tasks in a random order that its seed decides.
#[derive(Debug)]
pub struct Executor {
    core: Arc<Core>,
    world: SimEnvironment,
    random: Random,
    slots: Vec<Slot>,
    free: Vec<u32>,
    ready: Vec<TaskRef>,
    poll_nanos_max: u64,
    polls: u64,
    trace: u64,
    panics: Vec<Panicked>,
}

/// When a run is given up.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Polls in all.
    pub polls: u64,
    /// Polls in a row while time only passed by polling: tasks that need more are spinning.
    pub polls_without_time: u64,
    /// Virtual time.
    pub time: Duration,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The main task ended.
    Done,
    /// Nothing is ready and no timer waits, and yet the main task has not ended.
    Deadlock,
    /// Tasks wake each other without end.
    Livelock,
    /// The limit of time or of polls was passed.
    TimeUp,
}

/// A task that panicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked {
    /// Whose task it was.
    pub process: ProcessId,
    /// What it said.
    pub message: String,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    task: Option<Task>,
}

struct Task {
    process: ProcessId,
    future: BoxFuture<'static, ()>,
    flag: Arc<TaskWaker>,
    waker: Waker,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Executor {
    /// The executor of that seed. Each poll takes up to `poll_max` of virtual time.
    pub fn new(seed: u64, poll_max: Duration) -> Self {
        let mut random = Random::new(seed);
        let core = Arc::new(Core::new(random.fork()));
        let world = Control { core: Arc::clone(&core) }.process(Duration::ZERO);
        Self {
            core,
            world,
            random,
            slots: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            poll_nanos_max: u64::try_from(poll_max.as_nanos()).unwrap_or(u64::MAX),
            polls: 0,
            trace: 0,
            panics: Vec::new(),
        }
    }

    /// The environment of the world around the processes: it is never crashed.
    pub fn world(&self) -> SimEnvironment {
        self.world.clone()
    }

    /// The handle that makes, crashes and stops processes.
    pub fn control(&self) -> Control {
        Control { core: Arc::clone(&self.core) }
    }

    /// Runs `main` as a task of the world, and everything that it starts, until it ends.
    pub fn run(&mut self, main: BoxFuture<'static, ()>, limits: Limits) -> Finish {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        self.world.spawn(Box::pin(async move {
            main.await;
            done.store(true, Ordering::Relaxed);
        }));
        let time_max = u64::try_from(limits.time.as_nanos()).unwrap_or(u64::MAX);
        let mut polls_without_time = 0;
        let finish = loop {
            if is_done.load(Ordering::Relaxed) {
                break Finish::Done;
            }
            self.take_in();
            let Some(task) = self.pick() else {
                match self.jump() {
                    None => break Finish::Deadlock,
                    Some(now) if now > time_max => break Finish::TimeUp,
                    Some(_) => polls_without_time = 0,
                }
                continue;
            };
            self.poll(task);
            polls_without_time += 1;
            if polls_without_time > limits.polls_without_time {
                break Finish::Livelock;
            }
            if self.polls > limits.polls {
                break Finish::TimeUp;
            }
        };
        // What is left is dropped in the order of its slots, so that nothing is left to chance.
        for slot in &mut self.slots {
            drop(slot.task.take());
        }
        finish
    }

    /// A hash of which task was polled when: equal hashes, equal schedules.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// How many polls there were.
    pub fn polls(&self) -> u64 {
        self.polls
    }

    /// The tasks that panicked.
    pub fn panics(&self) -> &[Panicked] {
        &self.panics
    }

    /// Takes in what was spawned, killed, resumed and woken since the last turn.
    fn take_in(&mut self) {
        loop {
            let (spawned, killed) = {
                let mut state = self.core.lock();
                self.ready.append(&mut state.resumed);
                if state.spawned.is_empty() && state.killed.is_empty() {
                    break;
                }
                (std::mem::take(&mut state.spawned), std::mem::take(&mut state.killed))
            };
            for (process, future) in spawned {
                self.insert(process, future);
            }
            for process in killed {
                self.drop_tasks(process);
            }
        }
        self.core.woken.drain_into(&mut self.ready);
    }

    fn insert(&mut self, process: ProcessId, future: BoxFuture<'static, ()>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, task: None });
            (self.slots.len() - 1) as u32
        });
        let generation = self.slots[slot as usize].generation;
        let task = TaskRef { slot, generation };
        let queue = Arc::clone(&self.core.woken);
        let flag = Arc::new(TaskWaker { task, is_queued: AtomicBool::new(true), queue });
        let waker = Waker::from(Arc::clone(&flag));
        self.slots[slot as usize].task = Some(Task { process, future, flag, waker });
        self.ready.push(task);
    }

    fn remove(&mut self, slot: u32) -> Option<Task> {
        let held = &mut self.slots[slot as usize];
        held.generation += 1;
        self.free.push(slot);
        held.task.take()
    }

    fn drop_tasks(&mut self, process: ProcessId) {
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize].task.as_ref().is_some_and(|task| task.process == process) {
                drop(self.remove(slot));
            }
        }
    }

    /// A ready task that may be polled. Those of stopped processes are put aside.
    fn pick(&mut self) -> Option<TaskRef> {
        let mut state = self.core.lock();
        state.now += self.random.below(self.poll_nanos_max + 1);
        let now = state.now;
        state.timers.fire(now);
        self.core.woken.drain_into(&mut self.ready);
        while !self.ready.is_empty() {
            let at = self.random.below(self.ready.len() as u64) as usize;
            let picked = self.ready.swap_remove(at);
            let slot = &self.slots[picked.slot as usize];
            let Some(task) = slot.task.as_ref().filter(|_| slot.generation == picked.generation) else {
                continue;
            };
            let id = task.process;
            let process = &mut state.processes[usize::from(id.0)];
            if !process.is_alive {
                continue;
            }
            if process.is_paused {
                process.parked.push(picked);
                continue;
            }
            process.polls += 1;
            if process.kill_at.is_some_and(|at| process.polls >= at) {
                state.kill(id);
                drop(state);
                self.take_in();
                return self.pick();
            }
            self.polls += 1;
            let turn = now ^ (u64::from(picked.slot) << 48) ^ (u64::from(id.0) << 32);
            self.trace = (self.trace ^ turn).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
            return Some(picked);
        }
        None
    }

    /// Lets time jump to the next timer.
    fn jump(&mut self) -> Option<u64> {
        let mut state = self.core.lock();
        let deadline = state.timers.next()?;
        state.now = state.now.max(deadline);
        let now = state.now;
        state.timers.fire(now);
        Some(now)
    }

    fn poll(&mut self, picked: TaskRef) {
        let Some(task) = &mut self.slots[picked.slot as usize].task else {
            return;
        };
        task.flag.is_queued.store(false, Ordering::Relaxed);
        let process = task.process;
        let mut cx = Context::from_waker(&task.waker);
        let future = task.future.as_mut();
        let polled = catch_unwind(AssertUnwindSafe(|| future.poll(&mut cx)));
        match polled {
            Ok(Poll::Pending) => return,
            Ok(Poll::Ready(())) => {}
            Err(panic) => self.panics.push(Panicked { process, message: message_of(&*panic) }),
        }
        drop(self.remove(picked.slot));
    }
}

/// What a panic said.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "something that is no text".to_owned())
}
