use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::Core;
use super::timers::TimerKey;

/// Ready when virtual time has reached the deadline.
#[derive(Debug)]
pub(super) struct Sleep {
    core: Arc<Core>,
    deadline: u64,
    timer: Option<TimerKey>,
}

impl Sleep {
    pub(super) fn new(core: Arc<Core>, deadline: u64) -> Self {
        Self { core, deadline, timer: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = &mut *self;
        let mut state = sleep.core.lock();
        if state.now >= sleep.deadline {
            return Poll::Ready(());
        }
        let is_held = sleep.timer.is_some_and(|key| state.timers.update(key, cx.waker()));
        if !is_held {
            sleep.timer = Some(state.timers.insert(sleep.deadline, cx.waker().clone()));
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.timer {
            self.core.lock().timers.remove(key);
        }
    }
}
