//! Commands taken from an owner that vanished: one of them may be what made it vanish.

use std::collections::VecDeque;
use std::sync::Arc;

use super::calls::vanished;
use super::children;
use super::command::Command;
use super::shared::Shared;
use crate::machine::{Effect, Next};
use crate::store::Store;

impl<S: Store> Shared<S> {
    /// Runs suspects one at a time, each alone, its attempt written down before it begins: a command that ends its
    /// process is counted each time, and its neighbours are not.
    pub(super) async fn serve_suspects(self: Arc<Self>) {
        let take_one = |lane: &mut VecDeque<_>, taken: &mut Vec<_>| {
            if taken.is_empty() {
                taken.extend(lane.pop_front());
            }
        };
        while let Some(commands) = self.suspects.next(take_one).await {
            let _under_way = self.tasks.enter();
            for command in commands {
                Box::pin(self.run_suspect(command)).await;
            }
        }
    }

    async fn run_suspect(self: &Arc<Self>, command: Command<S>) {
        if command.attempts >= command.attempts_max() && command.late.is_none() {
            let attempted = vanished(&command);
            let next = if command.is_child() { children::given_up(&command) } else { self.after(&command, &attempted) };
            // What can only go forward is tried on; everything else is out of attempts.
            if matches!(next, Next::Settled(_)) {
                let Some(ids) = self.take_ids(command.saga.definition.width).await else { return };
                return self.settle(command, attempted, next, ids.start).await;
            }
        }
        // What cannot be held now is given back, and counts as no attempt.
        let Some(mut command) = self.hold(vec![command]).await.pop() else { return };
        if command.options().exclusive && !self.begin_to_keep(&mut command).await {
            return self.give_back(&[command.work]).await;
        }
        if !self.write_attempt(&mut command).await {
            return;
        }
        match command.effect() {
            Effect::Transactional => self.run_transactions(vec![command]).await,
            Effect::External | Effect::Remote { .. } | Effect::Own | Effect::Signal => self.run_call(command).await,
        }
    }

    async fn write_attempt(&self, command: &mut Command<S>) -> bool {
        // It is numbered, so that writing it down again after a commit in doubt counts it once.
        let attempt = command.attempts + 1;
        let work = command.work;
        let is_held = self.ask("begin_attempt", || self.store.begin_attempt(work, attempt)).await;
        if is_held.is_some() {
            command.attempts = attempt;
        }
        is_held.unwrap_or(false)
    }
}
