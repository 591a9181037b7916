use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use super::access::MessageAuthorizer;
use super::awaiting::WaitingCache;
use super::begin::CallStarts;
use super::bulkhead::{Bulkheads, ConcurrencyKey, Sizes};
use super::command::WorkItem;
use super::direct::SendQueue;
use super::due::PollTimer;
use super::held_topics::BlockedTopics;
use super::ids::IdBlocks;
use super::in_flight::SagaInstance;
use super::limits::BatchLimits;
use super::queue::Queue;
use super::recorder::Recorder;
use super::settings::Settings;
use super::start::Starts;
use super::starting_keys::PendingStarts;
use super::statistics::Counters;
use super::straight::StoreClock;
use super::supervisor::Supervisor;
use super::tasks::Tasks;
use super::trouble::HealthTracker;
use super::turns::KeyedMutex;
use super::waiters::Waiters;
use crate::choreography::Reaction;
use crate::env::Environment;
use crate::machine;
use crate::saga::{Definition, StepRun};
use crate::step::{CancelSignal, States};
use crate::store::{DefinitionId, MemberId, Store};
use crate::transport::Transport;

/// How many received messages are handled at a time.
const INBOX_LINES: usize = 64;

/// What all tasks of a runtime share.
pub(super) struct EngineContext<S: Store> {
    pub(super) store: Arc<S>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) authorizer: MessageAuthorizer,
    pub(super) env: Arc<dyn Environment>,
    pub(super) settings: Settings,
    pub(super) definitions: BTreeMap<DefinitionId, Arc<Definition<S>>>,
    pub(super) definition_ids: Arc<[DefinitionId]>,
    /// The steps that are hosted for others, by service and name.
    pub(super) hosted: BTreeMap<(String, String), Arc<Definition<S>>>,
    /// What is done when events come, by service.
    pub(super) reactions: BTreeMap<String, Arc<Vec<Reaction<S>>>>,
    /// The services whose messages are received here.
    pub(super) services: Vec<String>,
    pub(super) states: States,
    pub(super) ids: IdBlocks,
    /// Commands whose handler runs in a transaction.
    pub(super) transactions: Queue<WorkItem<S>>,
    /// Commands whose handler calls the outside world.
    pub(super) calls: Queue<WorkItem<S>>,
    /// Commands taken from an owner that vanished.
    pub(super) recovered: Queue<WorkItem<S>>,
    /// Those that vanished with a process that recovered them: they run one at a time.
    pub(super) recovered_again: Queue<WorkItem<S>>,
    /// Calls that are about to begin under a claim.
    pub(super) call_starts: CallStarts,
    /// The places and lines of those that are under way here.
    pub(super) bulkheads: Arc<Bulkheads>,
    pub(super) limits: BatchLimits,
    /// Whether the store can start a saga in a step transaction.
    pub(super) starts_in_transactions: bool,
    /// Whether the outbox is sent from here.
    pub(super) is_relayed: bool,
    pub(super) recorder: Recorder,
    pub(super) waiters: Waiters,
    pub(super) store_clock: StoreClock,
    /// Sagas that wait for another service.
    pub(super) waiting_cache: WaitingCache<S>,
    /// Who decides on a reply.
    pub(super) saga_locks: KeyedMutex,
    pub(super) tasks: Tasks,
    /// What panicked.
    pub(super) supervisor: Supervisor,
    /// When there is work in the store that nobody has.
    pub(super) poll_timer: PollTimer,
    pub(super) starts: Starts,
    pub(super) pending_starts: Arc<PendingStarts>,
    pub(super) statistics: Counters,
    pub(super) store_health: HealthTracker,
    pub(super) transport_health: HealthTracker,
    pub(super) blocked_topics: BlockedTopics,
    /// Messages that are sent from memory.
    pub(super) send_queue: SendQueue,
    /// There may be messages in the outbox.
    pub(super) outbox_filled: Notify,
    /// There may be messages in the inbox that nobody has.
    pub(super) inbox_filled: Notify,
    /// How many messages are handled at a time.
    pub(super) inbox_permits: Arc<Semaphore>,
    member: AtomicI64,
    /// Until when that member is certainly alive, in nanoseconds of this process' clock.
    alive_until: AtomicU64,
    /// From when on rows are taken over whose owner seems to have vanished, in nanoseconds of this process' clock.
    takes_over_from: AtomicU64,
    /// One beat at a time.
    pub(super) heartbeat: tokio::sync::Mutex<()>,
    /// Nothing new is taken.
    pub(super) stopping: CancelSignal,
    /// Nothing runs on.
    pub(super) stopped: CancelSignal,
}

/// What a runtime is made of.
pub(super) struct EngineParts<S: Store> {
    pub(super) store: Arc<S>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) authorizer: MessageAuthorizer,
    pub(super) env: Arc<dyn Environment>,
    pub(super) settings: Settings,
    pub(super) definitions: BTreeMap<DefinitionId, Arc<Definition<S>>>,
    pub(super) hosted: BTreeMap<(String, String), Arc<Definition<S>>>,
    pub(super) reactions: BTreeMap<String, Arc<Vec<Reaction<S>>>>,
    pub(super) services: Vec<String>,
    pub(super) states: States,
    pub(super) member: MemberId,
}

impl<S: Store> EngineContext<S> {
    pub(super) fn new(parts: EngineParts<S>) -> Self {
        let capabilities = parts.store.capabilities();
        let batch_max = parts.settings.batch_max.min(capabilities.batch_max);
        let steps = parts.definitions.values().flat_map(|definition| &definition.steps);
        let batch_steps: Vec<&'static str> =
            steps.filter(|step| matches!(step.run, StepRun::Batch(_))).map(|step| step.name).collect();
        let (transactions, calls) = (Queue::new(), Queue::new());
        let (suspects, repeaters) = (Queue::new(), Queue::new());
        let sizes = Sizes {
            places: parts.settings.sagas_in_memory_max,
            transactions: parts.settings.transactions_max,
            calls: parts.settings.external_calls_max,
            batch_max,
        };
        let queues = [transactions.filled(), calls.filled()];
        let env = Arc::clone(&parts.env);
        let beside = [suspects.filled(), repeaters.filled()];
        let bulkheads = Bulkheads::new(parts.definitions.values(), sizes, env, queues, beside);
        Self {
            definition_ids: parts.definitions.keys().cloned().collect(),
            ids: IdBlocks::new(),
            transactions,
            calls,
            recovered: suspects,
            recovered_again: repeaters,
            call_starts: CallStarts::new(),
            bulkheads,
            limits: BatchLimits::new(batch_max, parts.settings.batch_inputs_max, batch_steps),
            starts_in_transactions: capabilities.starts_in_transactions,
            is_relayed: capabilities.relayed,
            recorder: Recorder::new(),
            waiters: Waiters::new(),
            store_clock: StoreClock::default(),
            waiting_cache: WaitingCache::new(),
            saga_locks: KeyedMutex::default(),
            tasks: Tasks::new(),
            supervisor: Supervisor::default(),
            poll_timer: PollTimer::new(),
            starts: Starts::new(),
            pending_starts: Arc::default(),
            statistics: Counters::default(),
            store_health: HealthTracker::with("the store"),
            transport_health: HealthTracker::with("the transport"),
            blocked_topics: BlockedTopics::default(),
            send_queue: SendQueue::new(),
            outbox_filled: Notify::new(),
            inbox_filled: Notify::new(),
            inbox_permits: Arc::new(Semaphore::new(INBOX_LINES)),
            member: AtomicI64::new(parts.member.0),
            alive_until: AtomicU64::new(0),
            takes_over_from: AtomicU64::new(0),
            heartbeat: tokio::sync::Mutex::new(()),
            stopping: CancelSignal::new(),
            stopped: CancelSignal::new(),
            store: parts.store,
            transport: parts.transport,
            authorizer: parts.authorizer,
            env: parts.env,
            settings: parts.settings,
            definitions: parts.definitions,
            hosted: parts.hosted,
            reactions: parts.reactions,
            services: parts.services,
            states: parts.states,
        }
    }

    /// Where a command counts.
    pub(super) fn seat_of(&self, saga: &SagaInstance<S>, order: machine::Command) -> ConcurrencyKey {
        let (machine::Command::Do { step } | machine::Command::Undo { step, .. }) = order;
        let is_undo = matches!(order, machine::Command::Undo { .. });
        self.bulkheads.seat(&saga.definition.id, saga.state.base(step), is_undo, saga.effect_of(order))
    }

    /// This process as the owner of leases; nothing while it takes no new work.
    pub(super) fn member(&self) -> Option<MemberId> {
        let member = self.member.load(Ordering::Acquire);
        (member > 0 && !self.is_stopping()).then_some(MemberId(member))
    }

    /// This process as it is known to the store, also while it stops.
    pub(super) fn member_id(&self) -> MemberId {
        MemberId(self.member.load(Ordering::Acquire))
    }

    pub(super) fn set_member(&self, member: MemberId) {
        self.member.store(member.0, Ordering::Release);
    }

    /// Until when nobody takes this process for dead.
    pub(super) fn alive_until(&self) -> Duration {
        Duration::from_nanos(self.alive_until.load(Ordering::Acquire))
    }

    pub(super) fn set_alive_until(&self, moment: Duration) {
        self.alive_until.store(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Whether this process is certainly known to live: nobody else has what it leased.
    pub(super) fn is_alive(&self) -> bool {
        self.env.now() < self.alive_until()
    }

    /// Whether it takes over what others seem to have left.
    pub(super) fn takes_over(&self) -> bool {
        self.env.now() >= Duration::from_nanos(self.takes_over_from.load(Ordering::Acquire))
    }

    /// Others are given this time to come back before anything of theirs is taken over.
    pub(super) fn take_nothing_over_until(&self, moment: Duration) {
        self.takes_over_from.store(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Whether it takes no new work.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Whether nothing of it runs on.
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.is_cancelled()
    }

    pub(super) fn random_uuid(&self) -> Uuid {
        let bits = (u128::from(self.env.random()) << 64) | u128::from(self.env.random());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }
}
