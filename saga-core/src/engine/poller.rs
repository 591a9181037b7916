//! Claiming work that nobody has: retries that fell due, starts inside callers' transactions, and what dead or stopped
//! processes left behind.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::command::Command;
use super::in_flight::InFlight;
use super::late;
use super::outcome::Outcome;
use super::prepared::{Findings, HandOn};
use super::shared::Shared;
use crate::machine::{self, Effect, Event};
use crate::store::{
    Advance, Changes, ClaimRequest, Claimed, ClaimedWork, Condition, HistoryEntry, HistoryKind, Lease, Miss, Postponed,
    SagaRow, Status, StepRecord, Store, StoreError, WorkKind, WorkRef,
};

/// How long a step waits where another branch of its saga waits for a person, before it is looked at again.
const WHILE_STUCK: Duration = Duration::from_secs(1);
/// How many rows are claimed at a time.
const CLAIM_MAX: usize = 64;

impl<S: Store> Shared<S> {
    /// Claims work until the runtime stops.
    pub(super) async fn poll(self: Arc<Self>) {
        loop {
            self.work_due.wait(&*self.env).await;
            let Some(owner) = self.member() else { return };
            let places = self.take_places().await;
            let _under_way = self.tasks.enter();
            if self.is_stopping() {
                return;
            }
            let now = self.env.now();
            self.work_due.begin(now, now + self.settings.poll_interval);
            let limit = places.len();
            match self.claim(owner, places).await {
                Ok((claimed, next_due_in)) => {
                    self.store_works("claim");
                    let next_due_in = if claimed == limit { Some(Duration::ZERO) } else { next_due_in };
                    if let Some(due_in) = next_due_in {
                        self.announce_work(due_in);
                    }
                }
                Err(error) => self.store_failed("claim", &error),
            }
        }
    }

    /// Places for what will be claimed: at least one, which may have to be waited for.
    async fn take_places(&self) -> Vec<OwnedSemaphorePermit> {
        let mut places = Vec::new();
        // The semaphore is never closed.
        places.extend(Arc::clone(&self.places).acquire_owned().await.ok());
        while places.len() < CLAIM_MAX
            && let Ok(place) = Arc::clone(&self.places).try_acquire_owned()
        {
            places.push(place);
        }
        places
    }

    async fn claim(
        self: &Arc<Self>,
        owner: crate::store::MemberId,
        places: Vec<OwnedSemaphorePermit>,
    ) -> Result<(usize, Option<Duration>), StoreError> {
        let ttl = self.settings.lease_ttl;
        let lease_until = self.env.now() + ttl;
        let request =
            ClaimRequest { lease: Lease { owner, ttl }, limit: places.len(), definitions: Arc::clone(&self.known) };
        let Claimed { work, sagas, next_due_in } = self.store.claim(request).await?;
        let count = work.len();
        for (claimed, place) in work.into_iter().zip(places) {
            let found = sagas.iter().find(|(row, _)| row.id == claimed.saga);
            let Some((row, records)) = found else {
                tracing::error!(work = claimed.work.id.0, "the store claimed work of a saga that it did not give");
                continue;
            };
            self.take_on(claimed, row, records.clone(), lease_until, place).await;
        }
        Ok((count, next_due_in))
    }

    async fn take_on(
        self: &Arc<Self>,
        claimed: ClaimedWork,
        row: &SagaRow,
        records: Vec<StepRecord>,
        lease_until: Duration,
        place: OwnedSemaphorePermit,
    ) {
        let work = claimed.work;
        let Some(definition) = self.definitions.get(&row.definition) else {
            return self.give_back(&[work]).await;
        };
        if claimed.kind == WorkKind::Deadline {
            return self.deadline_passed(work, row).await;
        }
        let command = InFlight::of_row(row, records, definition)
            .and_then(|saga| Command::of_claim(claimed, saga, lease_until, Some(place)));
        let command = match command {
            Ok(mut command) => match self.read_own_output(&mut command).await {
                Ok(()) => Ok(command),
                Err(error) => {
                    self.store_failed("record_of", &error);
                    return self.give_back(&[work]).await;
                }
            },
            Err(problem) => Err(problem),
        };
        let turns_round = command.as_ref().is_ok_and(|command| command.is_child() && !command.is_undo());
        match command {
            Ok(command) => match command.row().unwanted(&command.saga.state) {
                // A success that an older owner noted is not new.
                None if command.saga.state.is_paused() && command.late.is_none() => self.park(command).await,
                None if row.status == Status::Stuck && command.effect() == Effect::Transactional => {
                    self.put_off(&command).await;
                }
                None => self.queue_up_claimed(command),
                // Its saga is to be turned round, which is something new.
                Some(_) if turns_round && command.saga.state.is_paused() => self.park(command).await,
                Some(_) if turns_round => self.queue_up_claimed(command),
                Some(event) => self.cancel(command, event).await,
            },
            Err(problem) => self.block_unreadable(row, &problem, Some(work)).await,
        }
    }

    /// A person is to decide about another branch first. No transaction is granted meanwhile.
    async fn put_off(&self, command: &Command<S>) {
        let postponed = Postponed {
            work: command.work,
            due_in: WHILE_STUCK,
            attempts: command.attempts,
            maybe: command.maybe,
            error: None,
        };
        match self.recorder.record(Changes { postponed: vec![postponed], ..Changes::default() }).await {
            Ok(Ok(())) => self.announce_work(WHILE_STUCK),
            Ok(Err(_)) => {}
            Err(_) => self.give_back(&[command.work]).await,
        }
    }

    /// The saga turned round, or was ended by an operator, before the command began: it never begins.
    async fn cancel(self: &Arc<Self>, command: Command<S>, event: Event) {
        let Some(ids) = self.take_ids(command.saga.definition.width).await else { return };
        let step = command.step_index();
        let mut findings = Findings { attempts: command.attempts, ..Findings::default() };
        if let (machine::Command::Do { .. }, Some(noted)) = (command.order, &command.late) {
            findings = Findings { attempts: command.attempts, ..late::findings(noted) };
        }
        let condition = if command.late.is_some() { Condition::Held } else { Condition::NotLate };
        let hand_on = HandOn { ids: ids.start, has_place: false };
        let mut saga = command.saga.clone();
        saga.state.steps[step].fence = command.fence();
        Self::keep_report(&command, &mut saga, &findings);
        if let Ok(mut prepared) = self.advance(&mut saga, event, &findings, hand_on) {
            prepared.changes.finished.push((command.work, condition));
            match self.apply_prepared(prepared).await {
                Ok(Ok(())) => {}
                // It moved meanwhile: whoever claims it next sees it as it is.
                Ok(Err(_)) | Err(_) => self.give_back(&[command.work]).await,
            }
        }
    }

    /// What is stored of a saga cannot be read: that is nobody's rejection, so the saga needs a person.
    pub(super) async fn block_unreadable(self: &Arc<Self>, row: &SagaRow, problem: &str, work: Option<WorkRef>) {
        tracing::error!(key = %row.key, definition = %row.definition, problem, "a saga cannot be read; it is stuck");
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
            Ok(Err(_)) | Err(_) => self.give_back(&work.into_iter().collect::<Vec<_>>()).await,
        }
    }
}
