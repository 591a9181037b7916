use std::sync::Arc;
use std::time::Duration;

use saga_core::env::{BoxFuture, Environment};

use super::core::{Core, ProcessId};
use super::sleep::Sleep;

/// Time, tasks and randomness of one process of the simulation. What it spawns belongs to that process and dies with it.
#[derive(Debug, Clone)]
pub struct SimEnvironment {
    pub(super) core: Arc<Core>,
    pub(super) process: ProcessId,
}

impl SimEnvironment {
    /// Whose environment it is.
    pub fn process(&self) -> ProcessId {
        self.process
    }
}

impl Environment for SimEnvironment {
    fn now(&self) -> Duration {
        let state = self.core.lock();
        Duration::from_nanos(state.now + state.processes[usize::from(self.process.0)].origin)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let deadline = self.core.lock().now.saturating_add(nanos);
        Box::pin(Sleep::new(Arc::clone(&self.core), deadline))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut state = self.core.lock();
        if state.processes[usize::from(self.process.0)].is_alive {
            state.spawned.push((self.process, task));
            return;
        }
        // The task is dropped outside the lock: its fields may be timers, which lock it themselves.
        drop(state);
        drop(task);
    }

    fn random(&self) -> u64 {
        self.core.lock().random.bits()
    }
}
