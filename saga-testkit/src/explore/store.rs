use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use saga_core::Key;
use saga_core::Tenant;
use saga_core::store::{
    Applied, Changes, Claim, ClaimRequest, Claimed, Incarnation, Lease, LockAnswer, LockRequest, MemberId, NewSaga,
    SagaMigration, SagaWithSteps, ShareRequest, Started, Store, StoreError, TransactError, TransactionBody, WorkId,
    WorkRef,
};

use super::life::Life;
use super::transaction::Watched;
use crate::intercept::{Intercept, Intercepted};

/// The user's store, with a boundary around each call that writes for a saga. It has the same connection, so the same
/// steps run on it.
pub type Explored<S> = Intercepted<Boundaries<S>>;

/// The boundaries around the calls of a store, in one life of a process.
#[derive(Debug)]
pub struct Boundaries<S> {
    pub(super) inner: Arc<S>,
    pub(super) life: Arc<Life>,
}

impl<S: Store> Boundaries<S> {
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

    /// The claimed rows.
    async fn claimed(
        &self,
        claim: impl Future<Output = Result<Claimed, StoreError>> + Send,
    ) -> Result<Claimed, StoreError> {
        let claimed = self.around("claim", claim).await?;
        self.life.live().await;
        if !claimed.work.is_empty() {
            let steps: Vec<&str> = claimed.work.iter().map(|work| work.step.as_str()).collect();
            self.life.pass(&format!("behind the claim of {}", steps.join(" and "))).await;
        }
        Ok(claimed)
    }

    /// A member that joined is that of this life.
    fn joined(&self, incarnation: Incarnation) -> Incarnation {
        self.life.set_member(incarnation.member);
        incarnation
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

impl<S: Store> Intercept for Boundaries<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    /// A dead process makes no call.
    async fn around<T: Send>(
        &self,
        _operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.life.live().await;
        call.await
    }

    async fn transact(&self, claims: Vec<Claim>, body: Box<dyn TransactionBody<S::Conn>>) -> Result<(), TransactError> {
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

    async fn start(&self, sagas: Vec<NewSaga>) -> Result<Vec<Started>, StoreError> {
        self.between("the start", self.inner.start(sagas)).await
    }

    async fn saga_with_steps(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaWithSteps>, StoreError> {
        let mut stored = self.around("saga_with_steps", self.inner.saga_with_steps(tenant, key)).await?;
        if let (Some(stored), Some(misread)) = (&mut stored, self.life.director.misreads) {
            misread(stored);
        }
        Ok(stored)
    }

    async fn migrate(&self, moved: SagaMigration) -> Result<Applied, StoreError> {
        self.between("the move to another version", self.inner.migrate(moved)).await
    }

    async fn reserve_ids(&self, count: u32) -> Result<Range<i64>, StoreError> {
        self.between("the reservation of ids", self.inner.reserve_ids(count)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        self.claimed(self.inner.claim(request)).await
    }

    async fn claim_shares(&self, request: ShareRequest) -> Result<Claimed, StoreError> {
        self.claimed(self.inner.claim_shares(request)).await
    }

    async fn begin(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.between("the beginning of a call", self.inner.begin(work, lease)).await
    }

    async fn release_work(&self, work: &[WorkRef]) -> Result<Vec<bool>, StoreError> {
        self.between("giving back", self.inner.release_work(work)).await
    }

    async fn release_unbegun(&self, owner: MemberId) -> Result<u64, StoreError> {
        self.between("giving back what was not begun", self.inner.release_unbegun(owner)).await
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
        self.between("a report", self.inner.report(work, number, progress, lease)).await
    }

    async fn note_late(&self, work: WorkId, output: &[u8]) -> Result<bool, StoreError> {
        self.between("the note of a late success", self.inner.note_late(work, output)).await
    }

    async fn record(&self, changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError> {
        let what = label(&changes);
        self.between(&what, self.inner.record(changes)).await
    }

    async fn ask_for_locks(&self, requests: Vec<LockRequest>) -> Result<Vec<LockAnswer>, StoreError> {
        self.between("the request for a semantic lock", self.inner.ask_for_locks(requests)).await
    }

    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError> {
        Ok(self.joined(self.around("join", self.inner.join(ttl)).await?))
    }

    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError> {
        Ok(self.joined(self.around("rejoin", self.inner.rejoin(former, ttl)).await?))
    }
}
