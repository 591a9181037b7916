use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::core::{Core, Process, ProcessId};
use super::environment::SimEnvironment;

/// Starts, crashes and stops processes. Tasks of the simulated world hold it.
#[derive(Debug, Clone)]
pub struct Control {
    pub(super) core: Arc<Core>,
}

impl Control {
    /// Makes a process whose clock shows `origin` at the beginning of the simulation.
    ///
    /// # Panics
    /// When there are more than 65,535 of them.
    pub fn process(&self, origin: Duration) -> SimEnvironment {
        let mut state = self.core.lock();
        let Ok(id) = u16::try_from(state.processes.len()) else {
            panic!("a simulation has at most {} processes", u16::MAX);
        };
        state.processes.push(Process {
            is_alive: true,
            is_paused: false,
            origin: u64::try_from(origin.as_nanos()).unwrap_or(u64::MAX / 2),
            polls: 0,
            kill_at: None,
            parked: Vec::new(),
            watchers: Vec::new(),
        });
        SimEnvironment { core: Arc::clone(&self.core), process: ProcessId(id) }
    }

    /// Virtual time since the beginning.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.core.lock().now)
    }

    /// Crashes a process: from now on none of its tasks is polled, and all of them are dropped.
    pub fn kill(&self, process: ProcessId) {
        self.core.lock().kill(process);
    }

    /// Crashes a process instead of polling it for the `polls`th time from now on.
    pub fn kill_after(&self, process: ProcessId, polls: u64) {
        let process = &mut self.core.lock().processes[usize::from(process.0)];
        process.kill_at = Some(process.polls + polls.max(1));
    }

    /// Takes a planned crash back.
    pub fn spare(&self, process: ProcessId) {
        self.core.lock().processes[usize::from(process.0)].kill_at = None;
    }

    /// Stops a process: its tasks are not polled, its clock goes on.
    pub fn pause(&self, process: ProcessId) {
        self.core.lock().processes[usize::from(process.0)].is_paused = true;
    }

    /// Lets a stopped process go on.
    pub fn resume(&self, process: ProcessId) {
        let mut state = self.core.lock();
        let stopped = &mut state.processes[usize::from(process.0)];
        stopped.is_paused = false;
        let mut parked = std::mem::take(&mut stopped.parked);
        state.resumed.append(&mut parked);
    }

    /// Whether the process was crashed.
    pub fn is_dead(&self, process: ProcessId) -> bool {
        !self.core.lock().processes[usize::from(process.0)].is_alive
    }

    /// Waits until the process was crashed.
    ///
    /// # Cancel safety
    /// It may be dropped at any time.
    pub async fn died(&self, process: ProcessId) {
        poll_fn(|cx| {
            let process = &mut self.core.lock().processes[usize::from(process.0)];
            if !process.is_alive {
                return Poll::Ready(());
            }
            process.watchers.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
