use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use saga_core::env::{Activity, ActivityGuard, BoxFuture, Environment, Pause};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::clock::Clock;
use super::kinds::{SleepKind, UnitKind};
use super::sleep::VirtualSleep;
use super::unit::Unit;
use crate::sim::splitmix64;

/// The environment of one process: tokio's tasks, on virtual time.
pub(crate) struct VirtualEnvironment {
    clock: Arc<Clock>,
    handle: Handle,
    tasks: Mutex<Vec<AbortHandle>>,
    drawn: Mutex<u64>,
}

impl VirtualEnvironment {
    pub(super) fn new(clock: &Arc<Clock>) -> Self {
        Self::with_seed(clock, clock.next_seed())
    }

    pub(crate) fn with_seed(clock: &Arc<Clock>, seed: u64) -> Self {
        Self { clock: Arc::clone(clock), handle: Handle::current(), tasks: Mutex::default(), drawn: Mutex::new(seed) }
    }

    /// Ends every task at its await, as SIGKILL would.
    pub(crate) fn kill(&self) {
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }
}

impl Environment for VirtualEnvironment {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let sleep = VirtualSleep::new(&self.clock, duration, SleepKind::Event);
        Box::pin(async move {
            sleep.await;
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let handle = self.handle.spawn(Task { unit: Unit::new(&self.clock, UnitKind::Task), task }).abort_handle();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| !task.is_finished());
        tasks.push(handle);
    }

    fn random(&self) -> u64 {
        splitmix64(&mut self.drawn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn pause(&self, pause: Pause) -> BoxFuture<'static, bool> {
        if pause.found {
            self.clock.has_found();
        }
        let now = self.clock.now();
        let due_at = pause.due_in.map(|due_in| now.saturating_add(due_in));
        Box::pin(VirtualSleep::new(&self.clock, pause.interval, SleepKind::Look { due_at }))
    }

    fn member_ttl(&self, ttl: Duration) -> Duration {
        ttl.saturating_add(self.clock.next_jump())
    }

    fn enter(&self, activity: Activity) -> Option<Box<dyn ActivityGuard>> {
        let kind = match activity {
            Activity::Call => UnitKind::Call,
            Activity::Transaction => UnitKind::Transaction,
            Activity::Waiting => UnitKind::Waiting,
            // What is not known is assumed to wait for something real.
            _ => UnitKind::Store,
        };
        Some(Box::new(Unit::new(&self.clock, kind)))
    }
}

/// A task that the clock knows: while it is ready to run, time stands still.
struct Task {
    unit: Unit,
    task: BoxFuture<'static, ()>,
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { unit, task } = &mut *self;
        unit.poll(cx, &mut |cx| task.as_mut().poll(cx))
    }
}
