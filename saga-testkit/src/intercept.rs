//! A store that stands between a runtime and another store, and changes some of the calls.
//!
//! [`Intercept`] has a method for each call of a store; each passes the call on unless it is overridden. [`Intercepted`]
//! makes a store of it.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{
    Applied, AuditFilter, AuditRow, Capabilities, Changes, Claim, ClaimRequest, Claimed, ClaimedMessages, DeadLetter,
    DeadLetterFilter, DeadLetterId, DeadLetterState, DeadLetters, DefinitionId, Definitions, EndedExpired, ExpireEnded,
    ExpiredCount, ExpiredSaga, Expiry, Hint, Hints, Ids, Inbox, Incarnation, KnownSaga, Lease, LeasedLane, Listener,
    LockAnswer, LockFilter, LockRequest, MemberId, Members, MessageId, NewDeadLetter, NewDefinition, NewMessage,
    NewParked, NewReceived, NewSaga, Outbox, OutboxDepth, OutboxRow, ParkedKey, Purge, Purged, ReceivedBatch, Records,
    SagaFilter, SagaId, SagaMigration, SagaProgress, SagaRow, SagaWithSteps, Sagas, SemanticLocks, ShareRequest,
    Started, Status, StepId, StepRecord, Store, StoreError, StoredDefinition, StoredLock, Timestamp, TransactError,
    TransactionBody, Unclosed, UnclosedFilter, Work, WorkId, WorkRef,
};
use saga_core::{Key, Tenant};

/// The store that an [`Intercept`] makes.
#[derive(Debug, Clone)]
pub struct Intercepted<I>(pub I);

macro_rules! intercept {
    ($($duty:ident { $(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*) => {
        /// Each call of a store that answers with a [`StoreError`], by the name of its method.
        pub const OPERATIONS: &[&str] = &[$($(stringify!($name),)*)*];

        /// What happens to the calls of a store. A method that is not overridden passes its call on.
        pub trait Intercept: Send + Sync + 'static {
            /// The store that the calls are passed on to.
            type Inner: Store;

            /// The store that the calls are passed on to.
            fn inner(&self) -> &Self::Inner;

            /// Surrounds each call whose method is not overridden; `operation` is the method's name, and `call` makes the
            /// call when it is awaited.
            ///
            /// # Cancel safety
            /// That of the call.
            fn around<T: Send>(
                &self,
                operation: &'static str,
                call: impl Future<Output = Result<T, StoreError>> + Send,
            ) -> impl Future<Output = Result<T, StoreError>> + Send {
                let _ = operation;
                call
            }

            /// [`Store::capabilities`].
            fn capabilities(&self) -> Capabilities {
                self.inner().capabilities()
            }

            /// [`Hints::hint`].
            fn hint(&self, hint: Hint) {
                self.inner().hint(hint);
            }

            /// [`Hints::listen`].
            fn listen(&self) -> Option<Box<dyn Listener>> {
                self.inner().listen()
            }

            /// [`Store::transact`].
            ///
            /// # Cancel safety
            /// That of the inner store.
            fn transact(
                &self,
                claims: Vec<Claim>,
                body: Box<dyn TransactionBody<<Self::Inner as Store>::Conn>>,
            ) -> impl Future<Output = Result<(), TransactError>> + Send {
                self.inner().transact(claims, body)
            }

            $($(
                #[doc = concat!("[`", stringify!($duty), "::", stringify!($name), "`].")]
                ///
                /// # Cancel safety
                /// That of the inner store.
                fn $name(
                    &self,
                    $($argument: $type),*
                ) -> impl Future<Output = Result<$answer, StoreError>> + Send {
                    async move { self.around(stringify!($name), self.inner().$name($($argument),*)).await }
                }
            )*)*
        }

        $(
            #[async_trait]
            impl<I: Intercept> $duty for Intercepted<I> {
                $(async fn $name(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
                    self.0.$name($($argument),*).await
                })*
            }
        )*
    };
}

intercept! {
    Sagas {
        fn start(sagas: Vec<NewSaga>) -> Vec<Started>;
        fn saga(tenant: &Tenant, key: &Key) -> Option<SagaRow>;
        fn saga_with_steps(tenant: &Tenant, key: &Key) -> Option<SagaWithSteps>;
        fn sagas_by_id(ids: &[SagaId]) -> Vec<SagaRow>;
        fn progress(ids: &[SagaId]) -> Vec<SagaProgress>;
        fn list(filter: &SagaFilter) -> Vec<SagaRow>;
        fn count(tenant: &Tenant) -> Vec<(Status, u64)>;
        fn orphaned(limit: usize) -> Vec<SagaId>;
        fn audit_log(filter: &AuditFilter) -> Vec<AuditRow>;
    }

    Definitions {
        fn register(definitions: Vec<NewDefinition>) -> Vec<StoredDefinition>;
        fn definitions() -> Vec<StoredDefinition>;
        fn unfinished(definitions: &[DefinitionId], limit: usize) -> Vec<SagaWithSteps>;
        fn migrate(moved: SagaMigration) -> Applied;
    }

    Ids {
        fn reserve_ids(count: u32) -> Range<i64>;
    }

    Work {
        fn claim(request: ClaimRequest) -> Claimed;
        fn claim_shares(request: ShareRequest) -> Claimed;
        fn renew(work: &[WorkRef], lease: Lease) -> Vec<bool>;
        fn begin(work: &[WorkRef], lease: Lease) -> Vec<bool>;
        fn release_work(work: &[WorkRef]) -> Vec<bool>;
        fn release_unbegun(owner: MemberId) -> u64;
        fn begin_attempt(work: WorkRef, attempt: u32) -> bool;
        fn report(work: WorkRef, number: u64, progress: &[u8], lease: Option<Lease>) -> bool;
        fn note_late(work: WorkId, output: &[u8]) -> bool;
        fn backlog() -> (u64, Option<Duration>);
        fn now() -> Timestamp;
        fn unknown_work(known: &[DefinitionId]) -> Vec<(DefinitionId, u64)>;
    }

    Records {
        fn record(changes: Vec<Changes>) -> Vec<Applied>;
        fn record_of(tenant: &Tenant, key: &Key, step: &StepId) -> Option<StepRecord>;
        fn records_of(tenant: &Tenant, key: &Key) -> Vec<StepRecord>;
        fn records_of_steps(tenant: &Tenant, key: &Key) -> Vec<StepRecord>;
    }

    Outbox {
        fn lease_lanes(lease: Lease, limit: usize) -> Vec<LeasedLane>;
        fn renew_lanes(lanes: &[LeasedLane], lease: Lease) -> Vec<bool>;
        fn release_lanes(lanes: &[LeasedLane]) -> ();
        fn read_lane(lane: LeasedLane, limit: usize) -> Vec<OutboxRow>;
        fn read_lanes(lanes: &[LeasedLane], limit: usize) -> Vec<OutboxRow>;
        fn sent(messages: &[MessageId]) -> ();
        fn park(parked: &[NewParked]) -> ();
        fn parked(tenant: Option<&Tenant>, limit: usize) -> Vec<ParkedKey>;
        fn release(message: MessageId) -> bool;
        fn discard(message: MessageId, letter: &NewDeadLetter, note: &str) -> bool;
        fn oldest_ages(messages: &[NewMessage]) -> Vec<Option<Duration>>;
        fn is_empty() -> bool;
        fn depth() -> OutboxDepth;
    }

    Inbox {
        fn receive(messages: Vec<NewReceived>) -> ReceivedBatch;
        fn claim_received(lease: Lease, limit: usize) -> ClaimedMessages;
        fn forget_received(older_than: Duration, limit: usize) -> u64;
    }

    DeadLetters {
        fn add_dead_letters(letters: Vec<NewDeadLetter>) -> Vec<bool>;
        fn dead_letters(filter: &DeadLetterFilter) -> Vec<DeadLetter>;
        fn dead_letter(tenant: &Tenant, id: DeadLetterId) -> Option<DeadLetter>;
        fn replay_dead_letter(tenant: &Tenant, id: DeadLetterId, work: WorkId, note: &str) -> Option<DeadLetterState>;
        fn discard_dead_letter(tenant: &Tenant, id: DeadLetterId, note: &str) -> Option<DeadLetterState>;
    }

    Members {
        fn join(ttl: Duration) -> Incarnation;
        fn rejoin(former: MemberId, ttl: Duration) -> Incarnation;
        fn heartbeat(member: MemberId, ttl: Duration) -> bool;
        fn leave(member: MemberId) -> ();
    }

    SemanticLocks {
        fn ask_for_locks(requests: Vec<LockRequest>) -> Vec<LockAnswer>;
        fn end_abandoned_locks(limit: usize) -> u64;
        fn locks(filter: &LockFilter) -> Vec<StoredLock>;
    }

    Purge {
        fn lease_maintenance(owner: MemberId, ttl: Duration) -> Option<u64>;
        fn expired(limit: usize) -> Vec<ExpiredSaga>;
        fn whole_sagas(sagas: &[SagaId]) -> Vec<SagaWithSteps>;
        fn purge(epoch: u64, sagas: &[ExpiredSaga], retry_interval: Duration) -> Purged;
        fn count_expired(limit: usize) -> Vec<ExpiredCount>;
        fn set_expiry(tenant: &Tenant, key: &Key, expiry: Option<&Expiry>) -> bool;
        fn expire_ended(request: &ExpireEnded) -> EndedExpired;
        fn expire_hosted(definitions: &[DefinitionId], closed: &[(Tenant, Key)], delete_in: Duration) -> u64;
        fn unclosed(epoch: u64, filter: &UnclosedFilter) -> Unclosed;
        fn known(tenant: &Tenant, keys: &[Key]) -> Vec<KnownSaga>;
        fn forget_dead_letters(older_than: Duration, limit: usize) -> u64;
        fn delete_expired_keys(limit: usize) -> u64;
        fn forget_published(older_than: Duration, limit: usize) -> u64;
    }
}

impl<I: Intercept> Hints for Intercepted<I> {
    fn hint(&self, hint: Hint) {
        self.0.hint(hint);
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        self.0.listen()
    }
}

#[async_trait]
impl<I: Intercept> Store for Intercepted<I> {
    type Conn = <I::Inner as Store>::Conn;

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn is_conflict(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        self.0.inner().is_conflict(error)
    }

    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<Self::Conn>>,
    ) -> Result<(), TransactError> {
        self.0.transact(claims, body).await
    }
}
