use async_trait::async_trait;
use saga_core::key::{Key, Tenant};
use saga_core::store::{
    Applied, Changes, Condition, Miss, Records, RetryClass, Sagas, StepId, StepRecord, StoreError, StoreErrorKind,
};

use super::{FaultyStore, StoreFlaw};

#[async_trait]
impl Records for FaultyStore {
    async fn record(&self, changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError> {
        let mut changes = self.twist(changes);
        self.expire_by_the_start(&mut changes).await?;
        self.date_what_is_exempt(&changes).await?;
        let unlocked = self.unlocks_of_later(&mut changes);
        let sent = changes.iter().flat_map(|change| &change.messages).map(|message| message.id);
        let is_again = sent.fold(false, |again, id| again | !self.noted().sent.insert(id));
        if is_again && self.has(StoreFlaw::RefusesWaiting) {
            return Err(StoreError::new(StoreErrorKind::Misuse, "record", "there is such a message already"));
        }
        if self.has(StoreFlaw::AcceptsTwoChanges) || self.has(StoreFlaw::EndsAtTheFirstMiss) {
            return self.one_by_one(changes).await;
        }
        let applied = if self.has(StoreFlaw::WaitsForRows) {
            self.waiting(|| self.inner.record(changes.clone())).await
        } else {
            self.inner.record(changes.clone()).await
        };
        if self.has(StoreFlaw::AppliesHalfInDoubt)
            && applied.as_ref().is_err_and(|error| error.class() == RetryClass::Unknown)
        {
            let half = changes.into_iter().map(|change| Changes { records: change.records, ..Changes::default() });
            self.inner.record(half.collect()).await?;
            return applied;
        }
        let mut answers = applied?;
        if !unlocked.is_empty() {
            self.inner.record(vec![Changes { unlocked, ..Changes::default() }]).await?;
        }
        for (answer, change) in answers.iter_mut().zip(changes) {
            if let Err(miss) = answer.clone() {
                *answer = self.after_miss(miss, change).await?;
            } else {
                self.note_records(&change);
            }
        }
        Ok(answers)
    }

    async fn record_of(&self, tenant: &Tenant, key: &Key, step: &StepId) -> Result<Option<StepRecord>, StoreError> {
        self.inner.record_of(tenant, key, step).await
    }

    async fn records_of(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        self.inner.records_of(tenant, key).await
    }

    async fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        if self.has(StoreFlaw::ReadsItems) {
            return self.inner.records_of(tenant, key).await;
        }
        self.inner.records_of_steps(tenant, key).await
    }
}

impl FaultyStore {
    /// Makes a call until it meets no lock.
    pub(super) async fn waiting<T, F>(&self, call: impl Fn() -> F + Send) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        loop {
            match call().await {
                Err(error) if error.kind() == StoreErrorKind::Conflict => {}
                answer => return answer,
            }
        }
    }

    /// The changes as the flaw writes them.
    pub(super) fn twist(&self, changes: Vec<Changes>) -> Vec<Changes> {
        let mut changes = changes;
        for change in &mut changes {
            for (work, condition) in &mut change.finished {
                *work = self.inward_to_record(*work);
                if self.has(StoreFlaw::IgnoresLateSuccess) {
                    *condition = Condition::Held;
                }
            }
            for message in change.messages.iter_mut().filter(|_| self.has(StoreFlaw::ReadsEarly)) {
                message.due_in = std::time::Duration::ZERO;
            }
            for postponed in &mut change.postponed {
                postponed.work = self.inward_to_record(postponed.work);
            }
            for command in &mut change.commands {
                if self.has(StoreFlaw::ClaimsEarly) {
                    command.due_in = std::time::Duration::ZERO;
                }
                if self.has(StoreFlaw::ForgetsAttempts) {
                    command.tried = None;
                }
                self.note_command(command);
            }
            if self.has(StoreFlaw::KeepsWithdrawn) {
                change.withdrawn.clear();
            }
            if self.has(StoreFlaw::LosesDeadLetters) {
                change.dead_letters.clear();
            }
            if self.has(StoreFlaw::ForgetsKeptLocks) {
                change.locked.clear();
            }
            if self.has(StoreFlaw::KeepsLocksOfWhatFails) || self.has(StoreFlaw::KeepsLocksLater) {
                self.noted().kept.append(&mut change.locked);
            }
            if self.has(StoreFlaw::ForgetsUnlocks) {
                change.unlocked.clear();
            }
            if self.has(StoreFlaw::ForgetsMessages) {
                change.messages.clear();
            }
        }
        changes
    }

    fn inward_to_record(&self, work: saga_core::store::WorkRef) -> saga_core::store::WorkRef {
        if self.has(StoreFlaw::GrantsAnyEpoch) { work } else { self.inward(work) }
    }

    /// Remembers the rows that wait though their steps have a record.
    fn note_records(&self, change: &Changes) {
        let mut noted = self.noted();
        for record in &change.records {
            let step_key = (record.tenant.clone(), record.key.clone(), record.step.clone());
            let Some(row) = noted.waiting.remove(&step_key) else { continue };
            if !change.finished.iter().any(|(work, _)| work.id == row.work.id) {
                noted.recorded.push(row);
            }
        }
    }

    async fn one_by_one(&self, changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError> {
        let mut answers: Vec<Applied> = Vec::new();
        for change in changes {
            let missed = answers.iter().find_map(|answer| answer.as_ref().err());
            match missed.filter(|_| self.has(StoreFlaw::EndsAtTheFirstMiss)) {
                Some(miss) => answers.push(Err(miss.clone())),
                None => answers.extend(self.inner.record(vec![change]).await?),
            }
        }
        Ok(answers)
    }

    /// What the flaw makes of changes that missed.
    async fn after_miss(&self, miss: Miss, change: Changes) -> Result<Applied, StoreError> {
        let again = match (self.flaw, &miss) {
            (Some(StoreFlaw::AppliesHalf), _) => {
                Changes { commands: change.commands, history: change.history, ..Changes::default() }
            }
            (Some(StoreFlaw::AppliesWithoutItsStart), Miss::Saga(_)) if change.start.is_some() => {
                Changes { start: None, ..change }
            }
            (Some(StoreFlaw::UnlocksWhatMisses), _) => Changes { unlocked: change.unlocked, ..Changes::default() },
            (Some(StoreFlaw::SendsUncommitted), _) => Changes { messages: change.messages, ..Changes::default() },
            (Some(StoreFlaw::AcceptsAnyVersion), Miss::Saga(now)) => {
                let saga = change.saga.map(|advance| saga_core::store::Advance { expected: now.version, ..advance });
                return self.again(Changes { saga, ..change }).await;
            }
            (Some(StoreFlaw::LetsEveryWriterWin), Miss::Saga(_)) => return Ok(Ok(())),
            (Some(StoreFlaw::RecordsTwice), Miss::Record(_)) => {
                return self.again(Changes { records: Vec::new(), revised: Vec::new(), ..change }).await;
            }
            (Some(StoreFlaw::ReportsTheSagaFirst), _) => {
                let Some(advance) = &change.saga else { return Ok(Err(miss)) };
                let rows = self.inner.sagas_by_id(&[advance.id]).await?;
                let moved = rows.into_iter().find(|row| row.version != advance.expected);
                return Ok(Err(moved.map_or(miss, |row| Miss::Saga(Box::new(row)))));
            }
            _ => return Ok(Err(miss)),
        };
        self.again(again).await?.ok();
        Ok(Err(miss))
    }

    async fn again(&self, change: Changes) -> Result<Applied, StoreError> {
        Ok(self.inner.record(vec![change]).await?.pop().unwrap_or(Ok(())))
    }
}
