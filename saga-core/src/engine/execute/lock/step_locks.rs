//! Takes the locks of steps before their functions are called.

use std::sync::Arc;
use std::time::Duration;

use super::lock_requests::{LockAnswers, LockRequests};
use crate::engine::decide::{step_lock_request, wanted_locks};
use crate::engine::execute::record::AttemptRecorder;
use crate::engine::instance::{AttemptDetails, AttemptResult, WorkItem, lock_of, takes_semantic_lock};
use crate::machine::Ending;
use crate::step::LockedEntity;
use crate::store::{LockAnswer, LockRequest, Store};

/// Takes the locks of steps. A command that does not get its lock leaves this process: the commit that hands the lock over
/// makes its work row due.
pub(crate) struct StepLocks<S: Store> {
    records: Arc<AttemptRecorder<S>>,
    requests: Arc<LockRequests<S>>,
}

impl<S: Store> StepLocks<S> {
    pub(crate) fn new(records: Arc<AttemptRecorder<S>>, requests: Arc<LockRequests<S>>) -> Self {
        Self { records, requests }
    }

    /// The transactional commands that may run now: those that have their locks, and those whose transactions take them, which
    /// `takes_in_transaction` says. A lock that another request has or waits for is asked for.
    pub(crate) async fn take_or_want(
        &self,
        mut commands: Vec<WorkItem<S>>,
        takes_in_transaction: impl Fn(&WorkItem<S>) -> bool,
    ) -> Vec<WorkItem<S>> {
        let steps_max = self.records.ctx.settings.steps_per_transaction_max;
        let is_wanting = |command: &WorkItem<S>| {
            let has_locks = command.saga.definition.locks_calls || takes_semantic_lock(command);
            has_locks && command.locked.is_empty() && !command.asks_for_lock
        };
        for command in commands.iter_mut().filter(|command| is_wanting(command)) {
            // What cannot be said is refused where it is asked for.
            match wanted_locks(command, steps_max) {
                Ok(wanted) if !wanted.is_empty() && takes_in_transaction(command) => command.wanted_locks = wanted,
                _ => {}
            }
        }
        let is_left = |command: &mut WorkItem<S>| takes_semantic_lock(command) && command.wanted_locks.is_empty();
        commands.extract_if(.., is_left).for_each(|command| self.leave(command));
        self.take(commands).await
    }

    /// Leaves a semantic lock that no transaction takes to the worker that asks for it and waits.
    fn leave(&self, mut command: WorkItem<S>) {
        match command.inline.take() {
            // Its row is written first.
            Some(request) => request.leave(),
            None => self.records.committer.scheduler.enqueue(command),
        }
    }

    /// The commands whose functions may be called now: those without a lock, and those that have theirs. One commit carries
    /// all requests.
    pub(crate) async fn take(&self, mut commands: Vec<WorkItem<S>>) -> Vec<WorkItem<S>> {
        if !commands.iter().any(needs_lock) {
            return commands;
        }
        let (mut asking, mut requests) = (Vec::new(), Vec::new());
        for command in commands.extract_if(.., |command| needs_lock(command)) {
            match step_lock_request(&command) {
                Ok(request) => {
                    asking.push(command);
                    requests.push(request);
                }
                Err(problem) => self.refuse(command, problem).await,
            }
        }
        let Some(LockAnswers { answers, asked_again }) = self.requests.ask_all(&requests).await else {
            return commands;
        };
        let mut waiting = Vec::new();
        for ((mut command, request), answer) in asking.into_iter().zip(requests).zip(answers) {
            if asked_again {
                // Its row may be free, so the lease is renewed before the call, unless another process has the row by then.
                command.lease_until = Duration::ZERO;
            }
            match answer {
                LockAnswer::Granted(tokens) => commands.push(with_locks(command, &request, tokens)),
                LockAnswer::Waits(left) => {
                    self.records.committer.scheduler.announce_work(left);
                    waiting.push(command);
                }
                // Another process has the command. The other two are answers to requests with a limit, and to owners that
                // have something while they wait.
                LockAnswer::Gone | LockAnswer::TimedOut(_) | LockAnswer::Deadlock(_) => {}
            }
        }
        self.hurry_called_off(waiting);
        commands
    }

    /// In a task of its own, since it may wait for a lock of the store while the commands that have theirs are to be called.
    fn hurry_called_off(&self, mut waiting: Vec<WorkItem<S>>) {
        if waiting.is_empty() {
            return;
        }
        for command in &mut waiting {
            drop(command.slot.take());
        }
        let committer = Arc::clone(&self.records.committer);
        let lifecycle = &committer.ctx.lifecycle;
        let (lifecycle, under_way) = (Arc::clone(lifecycle), lifecycle.enter());
        let task = async move {
            committer.hurry_called_off(&waiting).await;
            drop(under_way);
        };
        lifecycle.spawn("hurry called off commands", Box::pin(task));
    }

    /// What the step would lock cannot be said, so an operator decides.
    async fn refuse(&self, command: WorkItem<S>, problem: String) {
        let Some(ids) = self.records.committer.store_calls.take_ids(command.saga.definition.width).await else {
            return;
        };
        let findings = AttemptDetails { attempts: command.attempt_number(), ..AttemptDetails::default() };
        let attempted = AttemptResult { ending: Ending::Undecodable { message: problem }, findings };
        let next = self.records.decider.after(&command, &attempted);
        self.records.record_attempt(command, attempted, next, ids.start).await;
    }
}

fn with_locks<S: Store>(mut command: WorkItem<S>, request: &LockRequest, tokens: Vec<u64>) -> WorkItem<S> {
    let entities = request.entities.iter().map(|entity| entity.named().0);
    command.locked = entities.zip(tokens).map(|(entity, token)| LockedEntity { entity, token }).collect();
    command
}

/// Whether the command has to get a lock before its function is called. What took effect already is only recorded.
fn needs_lock<S: Store>(command: &WorkItem<S>) -> bool {
    let takes_it = !command.locked.is_empty() || !command.wanted_locks.is_empty();
    lock_of(command).is_some() && !takes_it && command.late_success.is_none()
}
