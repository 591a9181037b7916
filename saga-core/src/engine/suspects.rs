//! Recovered commands, which were taken from an owner that vanished: one of them may be what made it vanish.

use std::pin::pin;
use std::sync::Arc;

use super::bulkhead::{Admission, ConcurrencyKey};
use super::calls::vanished;
use super::children;
use super::command::WorkItem;
use super::put_back::TakenWork;
use super::shared::EngineContext;
use crate::machine::{Effect, Next};
use crate::store::Store;

impl<S: Store> EngineContext<S> {
    /// Gives the workers a command whose owner vanished. One that vanished once more when it was recovered, and never ended
    /// otherwise, runs with no other such beside it: they would be counted for what it does.
    pub(super) fn recover(self: &Arc<Self>, mut command: WorkItem<S>) {
        // Its place was for what waits for a line.
        if let Some(place) = &mut command.slot {
            place.leave_pool();
        }
        let has_vanished_again = command.attempts > 0 && command.retrying_for.is_zero();
        let lane = if has_vanished_again { &self.recovered_again } else { &self.recovered };
        let flow = self.seat_of(&command.saga, command.command).flow();
        let refused = lane.push_claimed(flow, command);
        self.return_refused(refused);
    }

    /// Runs recovered commands, each alone, its attempt written down before it begins: a command that ends its process is
    /// counted each time. There are several such lanes beside each other.
    pub(super) async fn serve_recovered(self: Arc<Self>, is_for_repeaters: bool) {
        // It has a lane instead of one of the lines.
        let line_of = |seat: ConcurrencyKey| Admission::on(self.bulkheads.try_beside(seat));
        let lane = if is_for_repeaters { &self.recovered_again } else { &self.recovered };
        while let Some(commands) = lane.next(|lane, taken| self.take_first(lane, taken, line_of)).await {
            for command in commands {
                let under_way = self.tasks.enter();
                let taken = [TakenWork::of(&command)];
                // An exclusive step may take hours: nothing waits for its end.
                if command.options().exclusive {
                    let shared = Arc::clone(&self);
                    self.spawn(
                        "recovered call",
                        Box::pin(async move {
                            shared.watch_over("recoveries", &taken, pin!(shared.run_recovered(command))).await;
                            drop(under_way);
                        }),
                    );
                } else {
                    // A lane waits most of the time: what it runs now and then is not a part of it.
                    self.watch_over("recoveries", &taken, Box::pin(self.run_recovered(command))).await;
                }
            }
        }
    }

    async fn run_recovered(self: &Arc<Self>, command: WorkItem<S>) {
        if command.attempts >= command.attempts_max() && command.late_success.is_none() {
            let attempted = vanished(&command);
            let next = if command.is_child() { children::given_up(&command) } else { self.after(&command, &attempted) };
            // What can only go forward is tried on; everything else is out of attempts.
            if matches!(next, Next::Settled(_)) {
                let Some(ids) = self.take_ids(command.saga.definition.width).await else { return };
                return self.record_attempt(command, attempted, next, ids.start).await;
            }
        }
        // What cannot be held now is given back, and counts as no attempt.
        let Some(mut command) = self.hold_leases(vec![command]).await.pop() else { return };
        if command.options().exclusive && !self.take_lease(&mut command).await {
            return self.release(&[command.work]).await;
        }
        if !self.write_attempt(&mut command).await {
            return;
        }
        match command.effect() {
            Effect::Transactional => self.run_transactions(vec![command]).await,
            Effect::External | Effect::Remote { .. } | Effect::Own | Effect::Signal => {
                Box::pin(self.run_call(command)).await;
            }
        }
    }

    async fn write_attempt(&self, command: &mut WorkItem<S>) -> bool {
        // It is numbered, so that writing it down again after a commit in doubt counts it once.
        let attempt = command.attempts + 1;
        let work = command.work;
        let is_held = self.retry_store("begin_attempt", || self.store.begin_attempt(work, attempt)).await;
        if is_held.is_some() {
            command.attempts = attempt;
        }
        is_held.unwrap_or(false)
    }
}
