//! Claiming work that nobody has: retries that fell due, starts inside callers' transactions, and what dead or stopped
//! processes left behind.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::asking::catch_panic;
use super::bulkhead::{CLAIM_MAX, ClaimPlan, QueueSlot};
use super::command::WorkItem;
use super::in_flight::SagaInstance;
use super::late;
use super::outcome::Outcome;
use super::prepared::{AttemptDetails, NextSlot, NextWork};
use super::put_back::TakenWork;
use super::shared::EngineContext;
use crate::log;
use crate::machine::{self, Effect, Event};
use crate::store::{
    Advance, Changes, ClaimRequest, Claimed, ClaimedWork, Condition, HistoryEntry, HistoryKind, Lease, MemberId, Miss,
    Postponed, SagaRow, ShareRequest, Status, StepRecord, Store, StoreError, Timestamp, WorkKind, WorkRef,
};

/// How long a step waits at least where another branch of its saga waits for a person, before it is looked at again.
const WHILE_STUCK: Duration = Duration::from_secs(1);
/// How long it waits at most. Longer than that, nobody who has decided waits for it.
const WHILE_STUCK_MAX: Duration = Duration::from_secs(30);

impl<S: Store> EngineContext<S> {
    /// Claims work until the runtime stops.
    pub(super) async fn poll(self: Arc<Self>) {
        // Whether the last claim was full: then much is due, and every second claim gives each definition a part.
        let (mut was_full, mut is_fair) = (false, false);
        loop {
            tokio::select! {
                biased;
                () = self.poll_timer.wait(&*self.env) => {}
                // Several that become free at about the same time are filled together.
                () = self.bulkheads.freed() => {
                    self.poll_timer.announce_later(self.env.now());
                    continue;
                }
            }
            if !self.wait_until_alive().await {
                return;
            }
            let _under_way = self.tasks.enter();
            let Some(owner) = self.member() else { return };
            is_fair = was_full && !is_fair && self.definition_ids.len() > 1;
            let now = self.env.now();
            let Some(plan) = self.bulkheads.plan(&self.definition_ids, is_fair) else {
                // A place that becomes free leads to the next look.
                self.poll_timer.begin(now, now.saturating_add(self.settings.poll_interval));
                continue;
            };
            self.poll_timer.begin(now, now.saturating_add(self.settings.poll_interval));
            match self.claim(owner, plan).await {
                Ok((claimed, next_due_in)) => {
                    self.store_works("claim");
                    was_full = claimed == CLAIM_MAX || is_fair && claimed > 0;
                    let next_due_in = if was_full { Some(Duration::ZERO) } else { next_due_in };
                    if let Some(due_in) = next_due_in {
                        self.announce_work(due_in);
                    }
                }
                Err(error) => self.store_failed("claim", &error),
            }
        }
    }

    async fn claim(
        self: &Arc<Self>,
        owner: MemberId,
        plan: ClaimPlan,
    ) -> Result<(usize, Option<Duration>), StoreError> {
        let ttl = self.settings.lease_ttl;
        let lease_until = self.env.now().saturating_add(ttl);
        let (lease, limit, takes_over) = (Lease { owner, ttl }, CLAIM_MAX, self.takes_over());
        let claimed = match plan.shares {
            None => {
                let definitions = Arc::clone(&self.definition_ids);
                let request = ClaimRequest { lease, limit, definitions, takes_over };
                catch_panic("claim", self.store.claim(request)).await?
            }
            Some(shares) => {
                let request = ShareRequest { lease, limit, shares, takes_over };
                catch_panic("claim_shares", self.store.claim_shares(request)).await?
            }
        };
        let Claimed { work, sagas, next_due_in } = claimed;
        let count = work.len();
        for claimed in work {
            let found = sagas.iter().find(|(row, _)| row.id == claimed.saga);
            let Some((row, records)) = found else {
                log::error!(work = claimed.work.id.0, "the store claimed work of a saga that it did not give");
                continue;
            };
            let taken = TakenWork::claimed(&claimed);
            let taking = pin!(self.accept_claimed(claimed, row, records.clone(), (owner, lease_until)));
            self.watch_over("take on", &[taken], taking).await;
        }
        Ok((count, next_due_in))
    }

    async fn accept_claimed(
        self: &Arc<Self>,
        claimed: ClaimedWork,
        row: &SagaRow,
        records: Vec<StepRecord>,
        (owner, lease_until): (MemberId, Duration),
    ) {
        let work = claimed.work;
        let Some(definition) = self.definitions.get(&row.definition) else {
            return self.release(&[work]).await;
        };
        if claimed.kind == WorkKind::Deadline {
            return self.deadline_passed(work, row).await;
        }
        let command = SagaInstance::of_row(row, records, definition)
            .and_then(|saga| WorkItem::of_claim(claimed, saga, owner, lease_until))
            .map(|command| WorkItem { slot: Some(self.place_of(&command)), ..command });
        let command = match command {
            Ok(mut command) => match self.read_own_output(&mut command).await {
                Ok(()) => Ok(command),
                Err(error) => {
                    self.store_failed("record_of", &error);
                    return self.release(&[work]).await;
                }
            },
            Err(problem) => Err(problem),
        };
        let turns_round = command.as_ref().is_ok_and(|command| command.is_child() && !command.is_undo());
        match command {
            Ok(command) => match command.row().unwanted(&command.saga.state) {
                // A success that an older owner noted is not new.
                None if command.saga.state.is_paused() && command.late_success.is_none() => self.park(command).await,
                None if row.status == Status::Stuck && command.effect() == Effect::Transactional => {
                    self.postpone_while_stuck(&command, row.advanced_at).await;
                }
                None => self.enqueue_claimed(command),
                // Its saga is to be turned round, which is something new.
                Some(_) if turns_round && command.saga.state.is_paused() => self.park(command).await,
                Some(_) if turns_round => self.enqueue_claimed(command),
                Some(event) => self.cancel(command, event).await,
            },
            Err(problem) => self.block_unreadable(row, &problem, Some(work)).await,
        }
    }

    /// The place of a command that was claimed. That there is room for it was known before.
    fn place_of(&self, command: &WorkItem<S>) -> QueueSlot {
        self.bulkheads.place(self.seat_of(&command.saga, command.command))
    }

    /// A person is to decide about another branch first. No transaction is granted meanwhile. The longer the saga has stood
    /// still, the longer it is until the next look.
    async fn postpone_while_stuck(&self, command: &WorkItem<S>, stands_since: Timestamp) {
        let stands_for = match self.store.now().await {
            Ok(now) => Duration::from_micros(u64::try_from(now.0.saturating_sub(stands_since.0)).unwrap_or(0)),
            Err(error) => {
                self.store_failed("now", &error);
                return self.release(&[command.work]).await;
            }
        };
        let due_in = (stands_for / 8).clamp(WHILE_STUCK, WHILE_STUCK_MAX);
        let postponed = Postponed {
            work: command.work,
            due_in,
            attempts: command.attempts,
            in_doubt: command.in_doubt,
            error: None,
        };
        match self.recorder.record(Changes { postponed: vec![postponed], ..Changes::default() }).await {
            Ok(Ok(())) => self.announce_work(due_in),
            Ok(Err(_)) => {}
            Err(_) => self.release(&[command.work]).await,
        }
    }

    /// The saga turned round, or was ended by an operator, before the command began: it never begins.
    async fn cancel(self: &Arc<Self>, command: WorkItem<S>, event: Event) {
        let Some(ids) = self.take_ids(command.saga.definition.width).await else { return };
        let step = command.step_index();
        let mut findings = AttemptDetails { attempts: command.attempts, ..AttemptDetails::default() };
        if let (machine::Command::Do { .. }, Some(noted)) = (command.command, &command.late_success) {
            findings = AttemptDetails { attempts: command.attempts, ..late::findings(noted) };
        }
        let condition = if command.late_success.is_some() { Condition::Held } else { Condition::NotLate };
        let hand_on = NextWork { ids: ids.start, slot: NextSlot::Nowhere };
        let mut saga = command.saga.clone();
        saga.state.steps[step].fence = command.fence();
        Self::keep_report(&command, &mut saga, &findings);
        if let Ok(mut prepared) = self.decide(&mut saga, event, &findings, hand_on) {
            prepared.changes.finished.push((command.work, condition));
            match self.commit_decision(prepared).await {
                Ok(Ok(())) => {}
                // It moved meanwhile: whoever claims it next sees it as it is.
                Ok(Err(_)) | Err(_) => self.release(&[command.work]).await,
            }
        }
    }

    /// What is stored of a saga cannot be read: that is nobody's rejection, so the saga needs a person.
    pub(super) async fn block_unreadable(self: &Arc<Self>, row: &SagaRow, problem: &str, work: Option<WorkRef>) {
        log::error!(key = %row.key, definition = %row.definition, problem, "a saga cannot be read; it is stuck");
        let changes = Changes {
            saga: Some(Advance { id: row.id, expected: row.version, status: Status::Stuck, state: row.state.clone() }),
            finished: work.map(|work| (work, Condition::Held)).into_iter().collect(),
            history: vec![HistoryEntry {
                saga: row.id,
                step: None,
                kind: HistoryKind::Stuck,
                attempt: 0,
                detail: problem.to_owned(),
            }],
            ..Changes::default()
        };
        match self.recorder.record(changes).await {
            Ok(Ok(())) => {
                let reason = problem.to_owned();
                self.waiters.tell(row.id, Some(Outcome::Stuck { step: String::new(), reason }));
            }
            Ok(Err(Miss::Work(_))) => {}
            Ok(Err(_)) | Err(_) => self.release(&work.into_iter().collect::<Vec<_>>()).await,
        }
    }
}
