use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::Key;
use saga_core::Tenant;
use saga_core::key::StepId;
use saga_core::store::{
    Applied, AuditFilter, AuditRow, Capabilities, Changes, Claim, ClaimRequest, Claimed, DefinitionId, Definitions,
    Hint, Hints, Ids, Incarnation, Lease, Listener, MemberId, Members, NewDefinition, NewSaga, Records, SagaFilter,
    SagaId, SagaMigration, SagaProgress, SagaRow, SagaWithSteps, Sagas, ShareRequest, Started, Status, StepRecord,
    Store, StoreError, StoredDefinition, Timestamp, TransactError, TransactionBody, Work, WorkId, WorkRef,
};

use super::environment::SPEED;
use super::life::Life;
use super::transaction::Watched;

/// The user's store, with a boundary around each call that writes for a saga. It has the same connection, so the same
/// steps run on it.
#[derive(Debug)]
pub struct Explored<S> {
    pub(super) inner: Arc<S>,
    pub(super) life: Arc<Life>,
}

impl<S: Store> Explored<S> {
    /// Makes a call between two boundaries.
    async fn between<T>(&self, what: &str, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.life.pass(&format!("before {what}")).await;
        let answer = call.await;
        self.life.live().await;
        if answer.is_ok() {
            self.life.pass(&format!("behind {what}")).await;
        }
        answer
    }

    /// Makes a call that is no boundary. A dead process makes none.
    pub(super) async fn through<T>(&self, call: impl Future<Output = T>) -> T {
        self.life.live().await;
        call.await
    }
}

/// What the runtime means by a duration, on the store's clock.
fn slower(duration: Duration) -> Duration {
    duration / SPEED
}

pub(super) fn slower_lease(lease: Lease) -> Lease {
    Lease { ttl: slower(lease.ttl), ..lease }
}

fn slower_changes(mut changes: Vec<Changes>) -> Vec<Changes> {
    for change in &mut changes {
        slow_down(change);
    }
    changes
}

pub(super) fn slow_down(change: &mut Changes) {
    for command in &mut change.commands {
        command.due_in = slower(command.due_in);
        command.lease = command.lease.map(slower_lease);
    }
    for postponed in &mut change.postponed {
        postponed.due_in = slower(postponed.due_in);
    }
    for message in &mut change.messages {
        message.due_in = slower(message.due_in);
    }
}

/// What changes are about, in words.
fn label(changes: &[Changes]) -> String {
    let records = changes.iter().flat_map(|change| &change.records);
    let mut words: Vec<String> =
        records.map(|record| format!("the record of {} as {}", record.step, record.outcome.as_str())).collect();
    if words.is_empty() {
        let entries = changes.iter().flat_map(|change| &change.history);
        words.extend(entries.map(|entry| {
            let step = entry.step.as_ref().map_or_else(String::new, |step| format!(" of {step}"));
            format!("the note `{}`{step}", entry.kind.as_str())
        }));
    }
    if words.is_empty() { "a record".to_owned() } else { words.join(" and ") }
}

impl<S: Store> Hints for Explored<S> {
    fn hint(&self, hint: Hint) {
        self.inner.hint(hint);
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        self.inner.listen()
    }
}

#[async_trait]
impl<S: Store> Store for Explored<S> {
    type Conn = S::Conn;

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn is_conflict(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        self.inner.is_conflict(error)
    }

    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<Self::Conn>>,
    ) -> Result<(), TransactError> {
        let steps: Vec<&str> = claims.iter().map(|claim| claim.step.as_str()).collect();
        let steps = steps.join(" and ");
        self.life.pass(&format!("before the transaction of {steps}")).await;
        let is_answered = self.life.director.is_answered(&steps);
        let before = if is_answered { self.life.look().await } else { None };
        let watched = Box::new(Watched { body, life: Arc::clone(&self.life) });
        let answer = self.inner.transact(claims, watched).await;
        self.life.live().await;
        if answer.is_ok() {
            if is_answered {
                let after = self.life.look().await;
                self.life.director.compare(before.as_deref(), after.as_deref());
            }
            self.life.pass(&format!("behind the transaction of {steps}")).await;
        }
        answer
    }
}

#[async_trait]
impl<S: Store> Sagas for Explored<S> {
    async fn start(&self, sagas: Vec<NewSaga>) -> Result<Vec<Started>, StoreError> {
        let slower = |mut saga: NewSaga| {
            for command in &mut saga.commands {
                command.due_in = slower(command.due_in);
                command.lease = command.lease.map(slower_lease);
            }
            saga
        };
        self.between("the start", self.inner.start(sagas.into_iter().map(slower).collect())).await
    }

    async fn saga(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaRow>, StoreError> {
        self.through(self.inner.saga(tenant, key)).await
    }

    async fn saga_with_steps(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaWithSteps>, StoreError> {
        let mut stored = self.through(self.inner.saga_with_steps(tenant, key)).await?;
        if let (Some(stored), Some(misread)) = (&mut stored, self.life.director.misreads) {
            misread(stored);
        }
        Ok(stored)
    }

    async fn progress(&self, ids: &[SagaId]) -> Result<Vec<SagaProgress>, StoreError> {
        self.through(self.inner.progress(ids)).await
    }

    async fn sagas_by_id(&self, ids: &[SagaId]) -> Result<Vec<SagaRow>, StoreError> {
        self.through(self.inner.sagas_by_id(ids)).await
    }

    async fn list(&self, filter: &SagaFilter) -> Result<Vec<SagaRow>, StoreError> {
        self.through(self.inner.list(filter)).await
    }

    async fn count(&self, tenant: &Tenant) -> Result<Vec<(Status, u64)>, StoreError> {
        self.through(self.inner.count(tenant)).await
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<SagaId>, StoreError> {
        self.through(self.inner.orphaned(limit)).await
    }

    async fn audit_log(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        self.through(self.inner.audit_log(filter)).await
    }
}

#[async_trait]
impl<S: Store> Definitions for Explored<S> {
    async fn register(&self, definitions: Vec<NewDefinition>) -> Result<Vec<StoredDefinition>, StoreError> {
        self.through(self.inner.register(definitions)).await
    }

    async fn definitions(&self) -> Result<Vec<StoredDefinition>, StoreError> {
        self.through(self.inner.definitions()).await
    }

    async fn migrate(&self, moved: SagaMigration) -> Result<Applied, StoreError> {
        self.between("the move to another version", self.inner.migrate(moved)).await
    }
}

#[async_trait]
impl<S: Store> Ids for Explored<S> {
    async fn reserve_ids(&self, count: u32) -> Result<Range<i64>, StoreError> {
        self.between("the reservation of ids", self.inner.reserve_ids(count)).await
    }
}

impl<S: Store> Explored<S> {
    /// What was claimed, with the times of this process.
    async fn claimed(&self, mut claimed: Claimed) -> Claimed {
        self.life.live().await;
        if !claimed.work.is_empty() {
            let steps: Vec<&str> = claimed.work.iter().map(|work| work.step.as_str()).collect();
            self.life.pass(&format!("behind the claim of {}", steps.join(" and "))).await;
        }
        claimed.next_due_in = claimed.next_due_in.map(|due_in| due_in * SPEED);
        for work in &mut claimed.work {
            work.retrying_for = work.retrying_for.map(|since| since * SPEED);
        }
        claimed
    }
}

#[async_trait]
impl<S: Store> Work for Explored<S> {
    async fn claim(&self, mut request: ClaimRequest) -> Result<Claimed, StoreError> {
        request.lease = slower_lease(request.lease);
        let claimed = self.through(self.inner.claim(request)).await?;
        Ok(self.claimed(claimed).await)
    }

    async fn claim_shares(&self, mut request: ShareRequest) -> Result<Claimed, StoreError> {
        request.lease = slower_lease(request.lease);
        let claimed = self.through(self.inner.claim_shares(request)).await?;
        Ok(self.claimed(claimed).await)
    }

    async fn renew(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.through(self.inner.renew(work, slower_lease(lease))).await
    }

    async fn begin(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.between("the beginning of a call", self.inner.begin(work, slower_lease(lease))).await
    }

    async fn release_work(&self, work: &[WorkRef]) -> Result<Vec<bool>, StoreError> {
        self.between("giving back", self.inner.release_work(work)).await
    }

    async fn begin_attempt(&self, work: WorkRef, attempt: u32) -> Result<bool, StoreError> {
        self.between("writing down an attempt", self.inner.begin_attempt(work, attempt)).await
    }

    async fn report(
        &self,
        work: WorkRef,
        number: u64,
        progress: &[u8],
        lease: Option<Lease>,
    ) -> Result<bool, StoreError> {
        self.between("a report", self.inner.report(work, number, progress, lease.map(slower_lease))).await
    }

    async fn note_late(&self, work: WorkId, output: &[u8]) -> Result<bool, StoreError> {
        self.between("the note of a late success", self.inner.note_late(work, output)).await
    }

    async fn backlog(&self) -> Result<(u64, Option<Duration>), StoreError> {
        self.through(self.inner.backlog()).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.through(self.inner.now()).await
    }

    async fn unknown_work(&self, known: &[DefinitionId]) -> Result<Vec<(DefinitionId, u64)>, StoreError> {
        self.through(self.inner.unknown_work(known)).await
    }
}

#[async_trait]
impl<S: Store> Records for Explored<S> {
    async fn record(&self, changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError> {
        let what = label(&changes);
        self.between(&what, self.inner.record(slower_changes(changes))).await
    }

    async fn record_of(&self, tenant: &Tenant, key: &Key, step: &StepId) -> Result<Option<StepRecord>, StoreError> {
        self.through(self.inner.record_of(tenant, key, step)).await
    }

    async fn records_of(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        self.through(self.inner.records_of(tenant, key)).await
    }

    async fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        self.through(self.inner.records_of_steps(tenant, key)).await
    }
}

#[async_trait]
impl<S: Store> Members for Explored<S> {
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError> {
        let incarnation = self.through(self.inner.join(slower(ttl))).await?;
        self.life.set_member(incarnation.member);
        Ok(incarnation)
    }

    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError> {
        let incarnation = self.through(self.inner.rejoin(former, slower(ttl))).await?;
        self.life.set_member(incarnation.member);
        Ok(incarnation)
    }

    async fn heartbeat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        self.through(self.inner.heartbeat(member, slower(ttl))).await
    }

    async fn leave(&self, member: MemberId) -> Result<(), StoreError> {
        self.through(self.inner.leave(member)).await
    }
}
