//! The duties in which no mistake is planted.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::key::StepId;
use saga_core::store::{
    Applied, AuditFilter, AuditRow, Changes, ClaimedMessages, DeadLetter, DeadLetterFilter, DeadLetterId,
    DeadLetterState, DeadLetters, Definitions, Hint, Hints, Ids, Inbox, Lease, LeasedLane, Listener, MessageId,
    NewDeadLetter, NewDefinition, NewParked, NewReceived, NewSaga, Outbox, OutboxDepth, OutboxRow, ParkedKey,
    ReceivedBatch, Records, SagaFilter, SagaId, SagaMigration, SagaProgress, SagaRow, SagaWithSteps, Sagas, Started,
    Status, StepRecord, StoreError, StoredDefinition, WorkId,
};
use saga_core::{Key, Tenant};

use super::SimStore;

/// Passes each call of a duty on to the data.
macro_rules! passed_on {
    ($duty:ident: $(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl $duty for SimStore {
            $(async fn $name(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
                self.data.$name($($argument),*).await
            })*
        }
    };
}

passed_on! { Sagas:
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

passed_on! { Definitions:
    fn register(definitions: Vec<NewDefinition>) -> Vec<StoredDefinition>;
    fn definitions() -> Vec<StoredDefinition>;
    fn migrate(moved: SagaMigration) -> Applied;
}

passed_on! { Ids:
    fn reserve_ids(count: u32) -> Range<i64>;
}

passed_on! { Records:
    fn record(changes: Vec<Changes>) -> Vec<Applied>;
    fn record_of(tenant: &Tenant, key: &Key, step: &StepId) -> Option<StepRecord>;
    fn records_of(tenant: &Tenant, key: &Key) -> Vec<StepRecord>;
    fn records_of_steps(tenant: &Tenant, key: &Key) -> Vec<StepRecord>;
}

passed_on! { Outbox:
    fn lease_lanes(lease: Lease, limit: usize) -> Vec<LeasedLane>;
    fn renew_lanes(lanes: &[LeasedLane], lease: Lease) -> Vec<bool>;
    fn release_lanes(lanes: &[LeasedLane]) -> ();
    fn read_lane(lane: LeasedLane, limit: usize) -> Vec<OutboxRow>;
    fn read_lanes(lanes: &[LeasedLane], limit: usize) -> Vec<OutboxRow>;
    fn sent(messages: &[MessageId]) -> ();
    fn park(parked: &[NewParked]) -> ();
    fn parked(limit: usize) -> Vec<ParkedKey>;
    fn release(message: MessageId) -> bool;
    fn discard(message: MessageId, letter: &NewDeadLetter, note: &str) -> bool;
    fn is_empty() -> bool;
    fn depth() -> OutboxDepth;
}

passed_on! { Inbox:
    fn receive(messages: Vec<NewReceived>) -> ReceivedBatch;
    fn claim_received(lease: Lease, limit: usize) -> ClaimedMessages;
    fn forget_received(older_than: Duration, limit: usize) -> u64;
}

passed_on! { DeadLetters:
    fn add_dead_letters(letters: Vec<NewDeadLetter>) -> Vec<bool>;
    fn dead_letters(filter: &DeadLetterFilter) -> Vec<DeadLetter>;
    fn dead_letter(tenant: &Tenant, id: DeadLetterId) -> Option<DeadLetter>;
    fn replay_dead_letter(tenant: &Tenant, id: DeadLetterId, work: WorkId, note: &str) -> Option<DeadLetterState>;
    fn discard_dead_letter(tenant: &Tenant, id: DeadLetterId, note: &str) -> Option<DeadLetterState>;
}

impl Hints for SimStore {
    fn hint(&self, hint: Hint) {
        self.data.hint(hint);
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        self.data.listen()
    }
}
