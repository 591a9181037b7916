//! A store that panics, once, in the call that it is told.
#![allow(clippy::wildcard_imports, reason = "it is about all of them")]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::key::StepId;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::*;
use saga_core::{Key, Tenant};

/// All that may be asked of a store.
pub(crate) const OPERATIONS: [&str; 53] = [
    "audit_log",
    "backlog",
    "heartbeat",
    "begin",
    "begin_attempt",
    "add_dead_letters",
    "claim",
    "claim_received",
    "claim_shares",
    "count",
    "dead_letter",
    "dead_letters",
    "definitions",
    "depth",
    "discard",
    "discard_dead_letter",
    "forget_received",
    "orphaned",
    "release_work",
    "join",
    "lease_lanes",
    "leave",
    "list",
    "migrate",
    "note_late",
    "now",
    "park",
    "parked",
    "read_lane",
    "read_lanes",
    "receive",
    "record",
    "record_of",
    "records_of",
    "records_of_steps",
    "register",
    "rejoin",
    "release",
    "release_lanes",
    "renew",
    "renew_lanes",
    "replay_dead_letter",
    "report",
    "reserve_ids",
    "saga",
    "saga_with_steps",
    "sagas_by_id",
    "sent",
    "progress",
    "start",
    "transact",
    "unknown_work",
    "listen",
];

#[derive(Clone)]
pub(crate) struct Brittle {
    inner: MemoryStore,
    panics_in: &'static str,
    /// Whether it panics when the call is carried out, and not before.
    is_late: bool,
    has_panicked: std::sync::Arc<AtomicBool>,
}

impl Brittle {
    pub(crate) fn new(inner: &MemoryStore, panics_in: &'static str, is_late: bool) -> Self {
        Self { inner: inner.clone(), panics_in, is_late, has_panicked: std::sync::Arc::default() }
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::SeqCst)
    }

    async fn call<T>(&self, operation: &str, call: impl Future<Output = T>) -> T {
        let is_first = |is_late| {
            operation == self.panics_in && self.is_late == is_late && !self.has_panicked.swap(true, Ordering::SeqCst)
        };
        assert!(!is_first(false), "{operation} was not to be called");
        let answer = call.await;
        assert!(!is_first(true), "{operation} was carried out");
        answer
    }
}

impl Hints for Brittle {
    fn hint(&self, hint: Hint) {
        self.inner.hint(hint);
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        assert!(self.panics_in != "listen" || self.has_panicked.swap(true, Ordering::SeqCst), "nobody is to listen");
        self.inner.listen()
    }
}

#[async_trait]
impl Store for Brittle {
    type Conn = MemoryConn;

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<Self::Conn>>,
    ) -> Result<(), TransactError> {
        self.call("transact", self.inner.transact(claims, body)).await
    }
}

#[async_trait]
impl Sagas for Brittle {
    async fn start(&self, sagas: Vec<NewSaga>) -> Result<Vec<Started>, StoreError> {
        self.call("start", self.inner.start(sagas)).await
    }

    async fn saga(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaRow>, StoreError> {
        self.call("saga", self.inner.saga(tenant, key)).await
    }

    async fn saga_with_steps(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaWithSteps>, StoreError> {
        self.call("saga_with_steps", self.inner.saga_with_steps(tenant, key)).await
    }

    async fn sagas_by_id(&self, ids: &[SagaId]) -> Result<Vec<SagaRow>, StoreError> {
        self.call("sagas_by_id", self.inner.sagas_by_id(ids)).await
    }

    async fn progress(&self, ids: &[SagaId]) -> Result<Vec<SagaProgress>, StoreError> {
        self.call("progress", self.inner.progress(ids)).await
    }

    async fn list(&self, filter: &SagaFilter) -> Result<Vec<SagaRow>, StoreError> {
        self.call("list", self.inner.list(filter)).await
    }

    async fn count(&self, tenant: &Tenant) -> Result<Vec<(Status, u64)>, StoreError> {
        self.call("count", self.inner.count(tenant)).await
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<SagaId>, StoreError> {
        self.call("orphaned", self.inner.orphaned(limit)).await
    }

    async fn audit_log(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        self.call("audit_log", self.inner.audit_log(filter)).await
    }
}

#[async_trait]
impl Definitions for Brittle {
    async fn register(&self, definitions: Vec<NewDefinition>) -> Result<Vec<StoredDefinition>, StoreError> {
        self.call("register", self.inner.register(definitions)).await
    }

    async fn definitions(&self) -> Result<Vec<StoredDefinition>, StoreError> {
        self.call("definitions", self.inner.definitions()).await
    }

    async fn migrate(&self, moved: SagaMigration) -> Result<Applied, StoreError> {
        self.call("migrate", self.inner.migrate(moved)).await
    }
}

#[async_trait]
impl Ids for Brittle {
    async fn reserve_ids(&self, count: u32) -> Result<Range<i64>, StoreError> {
        self.call("reserve_ids", self.inner.reserve_ids(count)).await
    }
}

#[async_trait]
impl Work for Brittle {
    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError> {
        self.call("claim", self.inner.claim(request)).await
    }

    async fn claim_shares(&self, request: ShareRequest) -> Result<Claimed, StoreError> {
        self.call("claim_shares", self.inner.claim_shares(request)).await
    }

    async fn begin(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.call("begin", self.inner.begin(work, lease)).await
    }

    async fn renew(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.call("renew", self.inner.renew(work, lease)).await
    }

    async fn release_work(&self, work: &[WorkRef]) -> Result<Vec<bool>, StoreError> {
        self.call("release_work", self.inner.release_work(work)).await
    }

    async fn begin_attempt(&self, work: WorkRef, attempt: u32) -> Result<bool, StoreError> {
        self.call("begin_attempt", self.inner.begin_attempt(work, attempt)).await
    }

    async fn report(
        &self,
        work: WorkRef,
        number: u64,
        progress: &[u8],
        lease: Option<Lease>,
    ) -> Result<bool, StoreError> {
        self.call("report", self.inner.report(work, number, progress, lease)).await
    }

    async fn note_late(&self, work: WorkId, output: &[u8]) -> Result<bool, StoreError> {
        self.call("note_late", self.inner.note_late(work, output)).await
    }

    async fn backlog(&self) -> Result<(u64, Option<Duration>), StoreError> {
        self.call("backlog", self.inner.backlog()).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.call("now", self.inner.now()).await
    }

    async fn unknown_work(&self, known: &[DefinitionId]) -> Result<Vec<(DefinitionId, u64)>, StoreError> {
        self.call("unknown_work", self.inner.unknown_work(known)).await
    }
}

#[async_trait]
impl Records for Brittle {
    async fn record(&self, changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError> {
        self.call("record", self.inner.record(changes)).await
    }

    async fn record_of(&self, tenant: &Tenant, key: &Key, step: &StepId) -> Result<Option<StepRecord>, StoreError> {
        self.call("record_of", self.inner.record_of(tenant, key, step)).await
    }

    async fn records_of(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        self.call("records_of", self.inner.records_of(tenant, key)).await
    }

    async fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        self.call("records_of_steps", self.inner.records_of_steps(tenant, key)).await
    }
}

#[async_trait]
impl Outbox for Brittle {
    async fn lease_lanes(&self, lease: Lease, limit: usize) -> Result<Vec<LeasedLane>, StoreError> {
        self.call("lease_lanes", self.inner.lease_lanes(lease, limit)).await
    }

    async fn renew_lanes(&self, lanes: &[LeasedLane], lease: Lease) -> Result<Vec<bool>, StoreError> {
        self.call("renew_lanes", self.inner.renew_lanes(lanes, lease)).await
    }

    async fn release_lanes(&self, lanes: &[LeasedLane]) -> Result<(), StoreError> {
        self.call("release_lanes", self.inner.release_lanes(lanes)).await
    }

    async fn read_lane(&self, lane: LeasedLane, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        self.call("read_lane", self.inner.read_lane(lane, limit)).await
    }

    async fn read_lanes(&self, lanes: &[LeasedLane], limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        self.call("read_lanes", self.inner.read_lanes(lanes, limit)).await
    }

    async fn sent(&self, messages: &[MessageId]) -> Result<(), StoreError> {
        self.call("sent", self.inner.sent(messages)).await
    }

    async fn park(&self, parked: &[NewParked]) -> Result<(), StoreError> {
        self.call("park", self.inner.park(parked)).await
    }

    async fn parked(&self, limit: usize) -> Result<Vec<ParkedKey>, StoreError> {
        self.call("parked", self.inner.parked(limit)).await
    }

    async fn release(&self, message: MessageId) -> Result<bool, StoreError> {
        self.call("release", self.inner.release(message)).await
    }

    async fn discard(&self, message: MessageId, letter: &NewDeadLetter, note: &str) -> Result<bool, StoreError> {
        self.call("discard", self.inner.discard(message, letter, note)).await
    }

    async fn depth(&self) -> Result<OutboxDepth, StoreError> {
        self.call("depth", self.inner.depth()).await
    }
}

#[async_trait]
impl Inbox for Brittle {
    async fn receive(&self, messages: Vec<NewReceived>) -> Result<ReceivedBatch, StoreError> {
        self.call("receive", self.inner.receive(messages)).await
    }

    async fn claim_received(&self, lease: Lease, limit: usize) -> Result<ClaimedMessages, StoreError> {
        self.call("claim_received", self.inner.claim_received(lease, limit)).await
    }

    async fn forget_received(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.call("forget_received", self.inner.forget_received(older_than, limit)).await
    }
}

#[async_trait]
impl DeadLetters for Brittle {
    async fn add_dead_letters(&self, letters: Vec<NewDeadLetter>) -> Result<Vec<bool>, StoreError> {
        self.call("add_dead_letters", self.inner.add_dead_letters(letters)).await
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        self.call("dead_letters", self.inner.dead_letters(filter)).await
    }

    async fn dead_letter(&self, tenant: &Tenant, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError> {
        self.call("dead_letter", self.inner.dead_letter(tenant, id)).await
    }

    async fn replay_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        self.call("replay_dead_letter", self.inner.replay_dead_letter(tenant, id, work, note)).await
    }

    async fn discard_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        self.call("discard_dead_letter", self.inner.discard_dead_letter(tenant, id, note)).await
    }
}

#[async_trait]
impl Members for Brittle {
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError> {
        self.call("join", self.inner.join(ttl)).await
    }

    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError> {
        self.call("rejoin", self.inner.rejoin(former, ttl)).await
    }

    async fn heartbeat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        self.call("heartbeat", self.inner.heartbeat(member, ttl)).await
    }

    async fn leave(&self, member: MemberId) -> Result<(), StoreError> {
        self.call("leave", self.inner.leave(member)).await
    }
}
