//! Workers for the steps that run in a transaction.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::asking::pause_after;
use super::attempt::erred;
use super::batch::Batch;
use super::batch_member::Member;
use super::command::Command;
use super::shared::Shared;
use crate::machine::Ending;
use crate::store::{Lease, RetryClass, Store, StoreErrorKind, TransactError, WorkId, WorkRef};

/// How often one command alone may meet the locks of others before that counts as a failed attempt.
const CONFLICTS_MAX: u32 = 8;

/// Commands that are to share a transaction.
struct Part<S: Store> {
    commands: Vec<Command<S>>,
    /// How often in a row that failed for what is nobody's fault.
    failures: u32,
    /// Whether each handler is to have a savepoint of its own.
    is_careful: bool,
}

impl<S: Store> Part<S> {
    fn of(commands: Vec<Command<S>>) -> Self {
        Self { commands, failures: 0, is_careful: false }
    }
}

impl<S: Store> Shared<S> {
    /// Runs transactions until the queue is closed.
    pub(super) async fn serve_transactions(self: Arc<Self>) {
        let workers = self.settings.transactions;
        let take = |lane: &mut _, taken: &mut _, share| self.take_batch(lane, taken, share);
        while let Some(commands) = self.transactions.next_share(&*self.env, workers, take).await {
            let _under_way = self.tasks.enter();
            let ids: Vec<WorkId> = commands.iter().map(|command| command.work.id).collect();
            self.run_transactions(commands).await;
            self.limits.leave_contended(&ids);
            self.transactions.done(ids.len());
        }
    }

    /// Takes commands that may share a transaction: of one tenant, each of another saga, none past its step's limit, and
    /// no more than `share`. Those of steps that met locks are passed over while others of these are under way, and come
    /// together beyond the share: nobody else may take them.
    fn take_batch(&self, lane: &mut VecDeque<Command<S>>, taken: &mut Vec<Command<S>>, share: usize) {
        let is_contended = |command: &Command<S>| self.limits.is_contended(command.step().name);
        let mut holds = taken.iter().any(is_contended);
        let mut place = 0;
        while let Some(command) = lane.get(place) {
            let is_contended = is_contended(command);
            let share = if is_contended { usize::MAX } else { share };
            let limit = if command.options().grouped { self.limit_of(command).min(share) } else { 1 };
            let fits = taken.is_empty()
                || taken.len() < limit
                    && taken.iter().all(|other| {
                        other.options().grouped
                            && other.saga.tenant == command.saga.tenant
                            && other.saga.id != command.saga.id
                    });
            if !fits {
                return;
            }
            if is_contended && !holds && !self.limits.enter_contended(command.work.id) {
                place += 1;
                continue;
            }
            holds |= is_contended;
            let alone = limit == 1;
            taken.extend(lane.remove(place));
            if alone {
                return;
            }
        }
    }

    /// With how many others the command may share a transaction, itself included.
    fn limit_of(&self, command: &Command<S>) -> usize {
        let limit = self.limits.of(command.step().name);
        if command.is_batch() { limit } else { limit.min(self.limits.batch_max()) }
    }

    /// Runs commands to their end, in as many transactions as that takes.
    pub(super) async fn run_transactions(self: &Arc<Self>, commands: Vec<Command<S>>) {
        let mut waiting = vec![Part::of(commands)];
        while let Some(Part { commands, failures, is_careful }) = waiting.pop() {
            let commands = self.hold(commands).await;
            if commands.is_empty() {
                continue;
            }
            let widths = commands.iter().map(|command| command.saga.definition.width).sum();
            let Some(ids) = self.take_ids(widths).await else { return };
            let batch = Batch::new(commands, ids, is_careful);
            match self.store.transact(batch.claims(), batch.body(self)).await {
                Ok(()) => self.committed(batch.take()).await,
                // It is large, and rarely needed.
                Err(error) => Box::pin(self.not_committed(&batch, &error, failures, &mut waiting)).await,
            }
        }
    }

    async fn committed(self: &Arc<Self>, members: Vec<Member<S>>) {
        let mut lost = Vec::new();
        for member in members {
            let work = member.work();
            let (Some(prepared), true) = (member.prepared, member.granted) else {
                match member.starting {
                    Some(starting) => starting.leave(),
                    None => lost.extend(work),
                }
                continue;
            };
            for step in &member.ran {
                self.limits.was_done(step.name, step.is_undo, step.took);
                self.statistics.count_done(step.is_undo);
            }
            if let (Some(command), Some((attempted, _))) = (&member.command, &member.attempted) {
                let (step, took) = (command.step().name, attempted.findings.share);
                match attempted.ending {
                    Ending::Done => self.limits.was_done(step, command.is_undo(), took),
                    _ => self.limits.succeeded(step, took),
                }
                self.statistics.count(command, &attempted.ending);
            }
            if let Some(starting) = member.starting {
                self.statistics.count_start(true);
                starting.answer(Ok(()));
            }
            self.after_commit(prepared, member.command.and_then(|command| command.place));
        }
        if !lost.is_empty() {
            // Somebody else has it, or the saga turned round: whoever claims the row next sees it as it is.
            self.give_back(&lost).await;
        }
    }

    async fn not_committed(
        self: &Arc<Self>,
        batch: &Batch<S>,
        error: &TransactError,
        failures: u32,
        waiting: &mut Vec<Part<S>>,
    ) {
        let blamed = batch.blamed(error.culprit);
        let mut members = batch.take();
        tracing::debug!(%error, count = members.len(), culprit = error.culprit, "a step transaction did not commit");
        if error.error.class() == RetryClass::Unknown {
            for starting in members.iter_mut().filter_map(|member| member.starting.take()) {
                starting.answer(Err(&error.error));
            }
            return self.learn_the_truth(members).await;
        }
        if batch.takes_care(error) {
            let commands = members.into_iter().filter_map(Member::into_started_over).collect();
            return waiting.push(Part { is_careful: true, ..Part::of(commands) });
        }
        if blamed.len() > 1 {
            return self.split_blamed(members, &blamed, waiting);
        }
        let alone = (members.len() == 1 && is_own_fault(error, failures)).then_some(0);
        let culprit = blamed.first().copied().or(alone);
        if error.error.kind() == StoreErrorKind::Conflict {
            let steps: BTreeSet<_> = members.iter().filter_map(Member::step).collect();
            for step in steps {
                self.limits.met_lock(step);
            }
        }
        if let Some(culprit) = culprit.filter(|&culprit| culprit < members.len()) {
            let mut member = members.remove(culprit);
            if let Some(starting) = member.starting.take() {
                // Started by itself, it meets the same again, with a row that its attempt is recorded on.
                member.start_over();
                if let Some(command) = &member.command {
                    self.limits.halve(command.step().name);
                }
                starting.leave();
                member.command = None;
            }
            if error.ended_transaction && member.has_only_claimed_step_run() {
                member.start_over();
            }
            if member.ran_on() {
                // Its saga's earlier steps are to be recorded first.
                waiting.extend(member.into_claimed().map(|command| Part::of(vec![command])));
            } else {
                Box::pin(self.settle_culprit(member, error)).await;
            }
        }
        // What is not of one of several is told to who starts the saga.
        let is_left = culprit.is_none() && (members.len() == 1 || !is_of_one(error));
        for member in members.extract_if(.., |member| is_left && member.starting.is_some()) {
            if let Some(starting) = member.starting {
                starting.leave();
            }
        }
        let ran_on = members.iter().any(Member::ran_on);
        let commands: Vec<_> = members.into_iter().filter_map(Member::into_claimed).collect();
        if commands.is_empty() {
            return;
        }
        if culprit.is_some() || (ran_on && commands.len() == 1 && is_of_one(error)) {
            waiting.push(Part::of(commands));
        } else if commands.len() > 1 && is_of_one(error) {
            if error.error.kind() != StoreErrorKind::Conflict {
                for command in &commands {
                    self.limits.halve(command.step().name);
                }
            }
            waiting.extend(in_halves(commands).map(Part::of));
        } else {
            self.env.sleep(pause_after(failures)).await;
            if self.is_stopping() {
                self.give_back(&refs(&commands)).await;
            } else {
                waiting.push(Part { failures: failures + 1, ..Part::of(commands) });
            }
        }
    }

    /// The call of a batch step is to blame. Its commands run again in halves, until the one is alone whose fault it is.
    fn split_blamed(&self, members: Vec<Member<S>>, blamed: &[usize], waiting: &mut Vec<Part<S>>) {
        self.statistics.count_split();
        let (mut of_call, mut others) = (Vec::new(), Vec::new());
        for (index, member) in members.into_iter().enumerate() {
            let commands = if blamed.contains(&index) { &mut of_call } else { &mut others };
            commands.extend(member.into_claimed());
        }
        waiting.extend(in_halves(of_call).chain([others]).filter(|part| !part.is_empty()).map(Part::of));
    }

    /// The handler is to blame: its attempt is recorded on its own.
    async fn settle_culprit(self: &Arc<Self>, mut member: Member<S>, error: &TransactError) {
        if error.ended_transaction {
            member.judge(self, Ending::Broke { message: "step ended its transaction".to_owned() });
        } else if !matches!(&member.attempted, Some((attempted, _)) if attempted.ending != Ending::Done) {
            member.judge(self, erred(error.to_string()));
        }
        let (Some(command), Some((attempted, next))) = (member.command, member.attempted) else { return };
        self.statistics.count(&command, &attempted.ending);
        self.settle(command, attempted, next, member.next_ids).await;
    }

    /// The commit is in doubt. Its rows are taken under their next epoch, which waits for it: those that can be taken
    /// were not finished by it. Whatever it left behind is free then, for anybody to claim.
    async fn learn_the_truth(&self, members: Vec<Member<S>>) {
        let successors = members.iter().filter_map(|member| member.prepared.as_ref()?.successor.as_ref());
        let mut rows: Vec<WorkRef> = successors.map(|successor| successor.work).collect();
        rows.extend(members.iter().filter_map(Member::work));
        self.give_back(&rows).await;
    }

    /// Keeps the commands whose leases cover their time limits, renewing where that is needed; what does not come back
    /// belongs to somebody else.
    pub(super) async fn hold(&self, commands: Vec<Command<S>>) -> Vec<Command<S>> {
        let now = self.env.now();
        let (mut held, short): (Vec<_>, Vec<_>) = commands
            .into_iter()
            .partition(|command| command.starting.is_some() || now + self.lease_needed(command) <= command.lease_until);
        if short.is_empty() {
            return held;
        }
        let longest = short.iter().map(|command| self.lease_needed(command)).max().unwrap_or_default();
        let ttl = self.settings.lease_ttl.max(longest + self.settings.poll_interval);
        let lease = Lease { owner: self.member_id(), ttl };
        match self.store.renew(&refs(&short), lease).await {
            Ok(renewed) => {
                let still_ours = short.into_iter().zip(renewed).filter(|(_, renewed)| *renewed);
                held.extend(still_ours.map(|(mut command, _)| {
                    command.lease_until = now + ttl;
                    command
                }));
            }
            Err(error) => {
                tracing::warn!(%error, count = short.len(), "leases could not be renewed; the commands are given back");
                self.give_back(&refs(&short)).await;
            }
        }
        held
    }
}

pub(super) fn refs<S: Store>(commands: &[Command<S>]) -> Vec<WorkRef> {
    commands.iter().map(|command| command.work).collect()
}

/// Whether one of a batch may have made it fail, so that the others do better without it.
fn is_of_one(error: &TransactError) -> bool {
    matches!(error.error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Other | StoreErrorKind::Misuse)
}

fn in_halves<S: Store>(mut commands: Vec<Command<S>>) -> impl Iterator<Item = Vec<Command<S>>> {
    let second = commands.split_off(commands.len() / 2);
    [commands, second].into_iter()
}

/// Whether a command that failed alone has only itself to blame. A store that is full or cannot be reached is nobody's
/// fault: it is waited for.
fn is_own_fault(error: &TransactError, failures: u32) -> bool {
    match error.error.kind() {
        StoreErrorKind::Other | StoreErrorKind::Misuse => true,
        StoreErrorKind::Conflict => failures >= CONFLICTS_MAX,
        _ => false,
    }
}
