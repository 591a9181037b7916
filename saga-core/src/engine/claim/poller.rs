//! Claims unleased work: due retries and waits, sagas that were started in callers' transactions, and rows of dead or stopped
//! processes.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::SetOnce;

use super::lost_claim::LostClaim;
use crate::engine::bulkhead::{CLAIM_MAX, ClaimPlan};
use crate::engine::commit::{Committer, changes, log_unreadable_work};
use crate::engine::context::EngineContext;
use crate::engine::decide::{Decider, keep_report, late_success, unwanted};
use crate::engine::instance::{AttemptDetails, NextSlot, NextWork, SagaInstance, TakenWork, WorkItem};
use crate::engine::schedule::InlineSteps;
use crate::env::{BoxFuture, concurrently, timeout};
use crate::log;
use crate::machine::{self, Command as Order, Effect, Event};
use crate::store::{
    ClaimRequest, Claimed, ClaimedWork, Condition, Lease, MemberId, Postponed, SagaRow, ShareRequest, Status,
    StepRecord, Store, StoreError, StoreErrorKind, Timestamp, WorkKind,
};

/// The shortest pause of a step while another branch of its saga is stuck.
const WHILE_STUCK: Duration = Duration::from_secs(1);

/// The longest such pause: after an operator has decided, the step continues within this time.
const WHILE_STUCK_MAX: Duration = Duration::from_secs(30);

/// Claims unleased work.
pub(crate) struct Poller<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
    pub(crate) committer: Arc<Committer<S>>,
    pub(super) decider: Arc<Decider<S>>,
    inline_steps: Arc<InlineSteps<S>>,
    /// Whether more work was due than the last claim could take.
    is_behind: AtomicBool,
    /// Set when the first claim has succeeded, or has found no slot.
    polled: SetOnce<()>,
    lost_claim: LostClaim,
}

impl<S: Store> Poller<S> {
    pub(crate) fn new(
        committer: Arc<Committer<S>>,
        decider: Arc<Decider<S>>,
        inline_steps: Arc<InlineSteps<S>>,
    ) -> Self {
        Self {
            ctx: Arc::clone(&committer.ctx),
            committer,
            decider,
            inline_steps,
            is_behind: AtomicBool::new(false),
            polled: SetOnce::new(),
            lost_claim: LostClaim::default(),
        }
    }
}

impl<S: Store> Poller<S> {
    /// Reads the output of an item that is to be undone: a claim returns no records of items.
    pub(crate) async fn read_own_output(&self, command: &mut WorkItem<S>) -> Result<(), StoreError> {
        let (saga, step) = (&command.saga, command.step_index());
        let is_needed = matches!(command.command, Order::Undo { known: true, .. });
        if !is_needed || saga.state.item_number(step).is_none() {
            return Ok(());
        }
        let record = self.ctx.store.record_of(&saga.tenant, &saga.key, &saga.doing(step)).await?;
        self.ctx.health.store_works("record_of");
        if let Some(output) = record.and_then(|record| record.output) {
            command.saga.keep_own_output(step, output.into());
        }
        Ok(())
    }

    /// Whether more work was due than the last claim could take.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Waits until this process has claimed for the first time what was due when it started.
    ///
    /// # Cancel safety
    /// When dropped, nothing is lost.
    pub(crate) async fn first_poll(&self) {
        self.polled.wait().await;
    }

    /// Claims work until the runtime stops.
    pub(crate) async fn poll(self: Arc<Self>) {
        // After a full claim much work is due, and every second claim gives each definition a part.
        let (mut was_full, mut is_fair) = (false, false);
        loop {
            tokio::select! {
                biased;
                () = self.committer.scheduler.poll_timer.wait(&*self.ctx.env) => {}
                // Slots that become free at about the same time are filled by one claim.
                () = self.committer.scheduler.bulkheads.freed() => {
                    self.committer.scheduler.poll_timer.announce_later(self.ctx.env.now());
                    continue;
                }
            }
            if !self.committer.scheduler.membership.wait_until_alive().await {
                return;
            }
            let _under_way = self.ctx.lifecycle.enter();
            let Some(owner) = self.committer.scheduler.membership.member() else { return };
            is_fair = was_full && !is_fair && self.ctx.definition_ids.len() > 1;
            let now = self.ctx.env.now();
            let next = now.saturating_add(self.ctx.settings.poll_interval);
            let Some(plan) = self.committer.scheduler.bulkheads.plan(&self.ctx.definition_ids, is_fair) else {
                // A slot that becomes free leads to the next poll.
                self.committer.scheduler.poll_timer.begin(now, next);
                self.has_polled();
                continue;
            };
            self.committer.scheduler.poll_timer.begin(now, next);
            match self.claim(owner, plan).await {
                Ok((claimed, next_due_in)) => {
                    self.ctx.health.store_works("claim");
                    self.committer.scheduler.poll_timer.has_polled(claimed);
                    was_full = claimed == CLAIM_MAX || is_fair && claimed > 0;
                    self.is_behind.store(was_full, Ordering::Relaxed);
                    self.has_polled();
                    let next_due_in = if was_full { Some(Duration::ZERO) } else { next_due_in };
                    if let Some(due_in) = next_due_in {
                        self.committer.scheduler.announce_work(due_in);
                    }
                }
                Err(error) => {
                    self.committer.scheduler.poll_timer.has_failed();
                    self.ctx.health.store_failed("claim", &error);
                }
            }
        }
    }

    fn has_polled(&self) {
        // Every poll but the first is refused.
        self.polled.set(()).ok();
    }

    async fn claim(
        self: &Arc<Self>,
        owner: MemberId,
        plan: ClaimPlan,
    ) -> Result<(usize, Option<Duration>), StoreError> {
        let ttl = self.ctx.settings.lease_ttl;
        let lease_until = self.ctx.env.now().saturating_add(ttl);
        let (lease, limit, takes_over) =
            (Lease { owner, ttl }, CLAIM_MAX, self.committer.scheduler.membership.takes_over());
        let claimed = match plan.shares {
            None => {
                let definitions = Arc::clone(&self.ctx.definition_ids);
                let request = ClaimRequest { lease, limit, definitions, takes_over };
                self.lost_claim.claim(&*self.ctx.store, owner, "claim", self.ctx.store.claim(request)).await?
            }
            Some(shares) => {
                let request = ShareRequest { lease, limit, shares, takes_over };
                let claim = self.ctx.store.claim_shares(request);
                self.lost_claim.claim(&*self.ctx.store, owner, "claim_shares", claim).await?
            }
        };
        let Claimed { work, sagas, next_due_in, unreadable } = claimed;
        log_unreadable_work(&unreadable);
        let count = work.len();
        let mut deciding: Vec<BoxFuture<'static, ()>> = Vec::new();
        for claimed in work {
            let found = sagas.iter().find(|(row, _)| row.id == claimed.saga);
            let Some((row, records)) = found else {
                log::error!(work_id = claimed.work.id.0, "claimed work without its saga");
                continue;
            };
            let taken = TakenWork::claimed(&claimed);
            let is_decided_here = claimed.kind == WorkKind::Deadline || row.status != Status::Running;
            if is_decided_here {
                let (this, row, records) = (Arc::clone(self), row.clone(), records.clone());
                deciding.push(Box::pin(async move {
                    let taking = Box::pin(this.accept_claimed(claimed, &row, records, (owner, lease_until)));
                    this.committer.watch_over("claim", &[taken], taking).await;
                }));
            } else {
                let taking = self.accept_claimed(claimed, row, records.clone(), (owner, lease_until));
                self.committer.watch_over("claim", &[taken], pin!(taking)).await;
            }
        }
        self.decide(deciding).await;
        Ok((count, next_due_in))
    }

    /// Decides about claimed rows of many sagas at once: the decisions share commits. While one of them waits for a lock, the poller
    /// goes on after `poll_interval`.
    async fn decide(&self, deciding: Vec<BoxFuture<'static, ()>>) {
        if deciding.is_empty() {
            return;
        }
        let (decided, under_way) = (Arc::new(SetOnce::new()), self.ctx.lifecycle.enter());
        let done = Arc::clone(&decided);
        let task = async move {
            concurrently(deciding).await;
            done.set(()).ok();
            drop(under_way);
        };
        self.ctx.lifecycle.spawn("decide about claimed work", Box::pin(task));
        // After a panic it is never set.
        _ = timeout(&*self.ctx.env, self.ctx.settings.poll_interval, decided.wait()).await;
    }

    async fn accept_claimed(
        self: &Arc<Self>,
        claimed: ClaimedWork,
        row: &SagaRow,
        records: Vec<StepRecord>,
        (owner, lease_until): (MemberId, Duration),
    ) {
        let work = claimed.work;
        let Some(definition) = self.ctx.definitions.get(&row.definition) else {
            return self.committer.scheduler.release(&[work]).await;
        };
        if claimed.kind == WorkKind::Deadline {
            return self.deadline_passed(work, row).await;
        }
        let command = SagaInstance::of_row(row, records, definition)
            .and_then(|saga| WorkItem::of_claim(claimed, saga, owner, lease_until))
            .map(|command| WorkItem { slot: Some(self.committer.scheduler.slot_of_claimed(&command)), ..command });
        let command = match command {
            Ok(mut command) => match self.read_own_output(&mut command).await {
                Ok(()) => Ok(command),
                // To claim it again would bring the same answer.
                Err(error) if error.kind() == StoreErrorKind::Corrupt => Err(error.to_string()),
                Err(error) => {
                    self.ctx.health.store_failed("record_of", &error);
                    return self.committer.scheduler.release(&[work]).await;
                }
            },
            Err(problem) => Err(problem),
        };
        let starts_compensating =
            command.as_ref().is_ok_and(|command| command.step().saga().is_some() && !command.is_undo());
        match command {
            Ok(command) => match unwanted(&command) {
                // A success that an earlier owner noted is no new work, so it is not parked.
                None if command.saga.state.is_paused() && command.late_success.is_none() => self.park(command).await,
                None if row.status == Status::Stuck && command.effect() == Effect::Transactional => {
                    self.postpone_while_stuck(&command, row.advanced_at).await;
                }
                None => {
                    if let Some(command) = self.inline_steps.take_claimed_lock(command) {
                        self.committer.scheduler.enqueue_claimed(command);
                    }
                }
                // The saga is to start compensating, which is a new decision.
                Some(_) if starts_compensating && command.saga.state.is_paused() => self.park(command).await,
                Some(_) if starts_compensating => self.committer.scheduler.enqueue_claimed(command),
                Some(event) => self.cancel(command, event).await,
            },
            Err(problem) => self.committer.block_unreadable(row, &problem, Some(work)).await,
        }
    }

    /// Postpones a transactional step until an operator has decided about another branch: the store grants no transaction before. The
    /// longer the saga is stuck, the longer the pause.
    async fn postpone_while_stuck(&self, command: &WorkItem<S>, stuck_since: Timestamp) {
        let stuck_for = match self.ctx.store.now().await {
            Ok(now) => {
                self.ctx.health.store_works("now");
                Duration::from_micros(u64::try_from(now.0.saturating_sub(stuck_since.0)).unwrap_or(0))
            }
            Err(error) => {
                self.ctx.health.store_failed("now", &error);
                return self.committer.scheduler.release(&[command.work]).await;
            }
        };
        let due_in = (stuck_for / 8).clamp(WHILE_STUCK, WHILE_STUCK_MAX);
        let postponed = Postponed {
            work: command.work,
            due_in,
            attempts: command.attempts,
            in_doubt: command.in_doubt,
            error: None,
        };
        match self.committer.recorder.record(changes::postpone(postponed)).await {
            Ok(Ok(())) => self.committer.scheduler.announce_work(due_in),
            Ok(Err(_)) => {}
            Err(_) => self.committer.scheduler.release(&[command.work]).await,
        }
    }

    /// Cancels a command that must not begin any more: its saga started compensating, or an operator ended it.
    pub(crate) async fn cancel(self: &Arc<Self>, command: WorkItem<S>, event: Event) {
        let Some(ids) = self.committer.store_calls.take_ids(command.saga.definition.width).await else { return };
        let step = command.step_index();
        let mut details = AttemptDetails { attempts: command.attempts, ..AttemptDetails::default() };
        if let (machine::Command::Do { .. }, Some(noted)) = (command.command, &command.late_success) {
            details = AttemptDetails { attempts: command.attempts, ..late_success::findings(noted) };
        }
        let condition = if command.late_success.is_some() { Condition::Held } else { Condition::NotLate };
        let next_work = NextWork { ids: ids.start, slot: NextSlot::Nowhere };
        let mut saga = command.saga.clone();
        saga.state.steps[step].fence = command.fence();
        keep_report(&command, &mut saga, &details);
        if let Ok(mut prepared) = self.decider.decide(&mut saga, event, &details, next_work) {
            prepared.changes.finished.push((command.work, condition));
            match self.committer.commit_decision(prepared).await {
                Ok(Ok(())) => {}
                // The saga moved meanwhile: the next claim reads it again.
                Ok(Err(_)) | Err(_) => self.committer.scheduler.release(&[command.work]).await,
            }
        }
    }
}
