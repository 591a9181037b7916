//! The components of a runtime, and how they are put together.

use std::sync::Arc;

use super::listener::HintListener;
use crate::engine::admin::AdminRuntime;
use crate::engine::choreography::Choreography;
use crate::engine::claim::Poller;
use crate::engine::commit::{Committer, Recorder};
use crate::engine::context::EngineContext;
use crate::engine::coordinator::Coordinator;
use crate::engine::decide::{Decider, RuntimePorts};
use crate::engine::execute::attempt::Attempts;
use crate::engine::execute::builtin::BuiltinSteps;
use crate::engine::execute::external::ExternalCalls;
use crate::engine::execute::lease::LeaseKeeper;
use crate::engine::execute::lock::{LockRequests, StepLocks};
use crate::engine::execute::progress::ProgressWriter;
use crate::engine::execute::record::AttemptRecorder;
use crate::engine::execute::recovery::Recovery;
use crate::engine::execute::sub_saga::SubSagas;
use crate::engine::execute::transaction::Transactions;
use crate::engine::host::Host;
use crate::engine::inbox::Inbox;
use crate::engine::instance::WorkItem;
use crate::engine::maintenance::Maintenance;
use crate::engine::membership::Membership;
use crate::engine::message::{Messages, Validator};
use crate::engine::outbox::{Outbox, Publisher, Relay};
use crate::engine::outcome::{OutcomeWatcher, Waiters};
use crate::engine::queue::{BatchLimits, PollTimer};
use crate::engine::schedule::{Dispatch, InlineSteps, Scheduler};
use crate::engine::start::Starter;
use crate::engine::statistics::Counters;
use crate::engine::store_calls::StoreCalls;
use crate::saga::StepRun;
use crate::store::{Archive, MemberId, Store};

/// The components of a runtime. Each of them knows only those below it.
pub(crate) struct Engine<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
    pub(crate) membership: Arc<Membership<S>>,
    pub(crate) outcomes: Arc<OutcomeWatcher<S>>,
    pub(crate) relay: Arc<Relay<S>>,
    pub(crate) committer: Arc<Committer<S>>,
    pub(crate) decider: Arc<Decider<S>>,
    pub(crate) starter: Arc<Starter<S>>,
    pub(crate) leases: Arc<LeaseKeeper<S>>,
    pub(crate) locks: Arc<LockRequests<S>>,
    pub(crate) external: Arc<ExternalCalls<S>>,
    pub(crate) transactions: Arc<Transactions<S>>,
    pub(crate) recovery: Arc<Recovery<S>>,
    pub(crate) inbox: Arc<Inbox<S>>,
    pub(crate) poller: Arc<Poller<S>>,
    pub(crate) statistics: Arc<Counters>,
    pub(crate) hints: Arc<HintListener<S>>,
    pub(crate) maintenance: Arc<Maintenance<S>>,
    /// Kept for the scheduler, which refers to it weakly.
    _executors: Arc<dyn Dispatch<S>>,
}

impl<S: Store> Engine<S> {
    /// Builds the components from the lowest to the highest.
    pub(crate) fn new(ctx: Arc<EngineContext<S>>, member: MemberId, archive: Option<Arc<dyn Archive>>) -> Self {
        let poll_timer = Arc::new(PollTimer::new());
        let store_calls = Arc::new(StoreCalls::new(Arc::clone(&ctx)));
        let membership = Arc::new(Membership::new(Arc::clone(&ctx), Arc::clone(&poll_timer), member));
        let waiters = Arc::new(Waiters::new());
        let outcomes = Arc::new(OutcomeWatcher::new(Arc::clone(&ctx), Arc::clone(&waiters)));
        let validator = Arc::new(Validator::new(Arc::clone(&ctx), Arc::clone(&store_calls)));
        let messages = Arc::new(Messages::new(&ctx.env, &ctx.settings));
        let scheduler =
            Arc::new(Scheduler::new(Arc::clone(&ctx), Arc::clone(&store_calls), Arc::clone(&membership), poll_timer));
        let locks = Arc::new(LockRequests::new(Arc::clone(&ctx), &store_calls));
        let publisher = Arc::new(Publisher::new(Arc::clone(&ctx)));
        let outbox = Arc::new(Outbox::new(store_calls, Arc::clone(&publisher)));
        let decider_ports = RuntimePorts { scheduler: Arc::clone(&scheduler), outbox: Arc::clone(&outbox) };
        let decider = Arc::new(Decider::new(Arc::clone(&messages), decider_ports));
        let relay = Arc::new(Relay::new(Arc::clone(&membership), Arc::clone(&outbox), publisher));
        let recorder = Arc::new(Recorder::new(Arc::clone(&ctx)));
        let committer = Arc::new(Committer::new(Arc::clone(&scheduler), outbox, recorder, Arc::clone(&waiters)));
        let limits = Arc::new(batch_limits(&ctx));
        let counters = Arc::new(Counters::default());
        let inline_steps = Arc::new(InlineSteps::new(Arc::clone(&scheduler), Arc::clone(&limits)));
        let starter = Arc::new(Starter::new(
            Arc::clone(&scheduler),
            Arc::clone(&decider),
            waiters,
            Arc::clone(&inline_steps),
            Arc::clone(&counters),
        ));
        let attempts = Arc::new(Attempts::new(Arc::clone(&ctx), Arc::clone(&decider), limits, Arc::clone(&counters)));
        let leases = Arc::new(LeaseKeeper::new(Arc::clone(&scheduler)));
        let records = Arc::new(AttemptRecorder::new(Arc::clone(&committer), Arc::clone(&decider)));
        let progress = Arc::new(ProgressWriter::new(Arc::clone(&committer), Arc::clone(&messages)));
        let sub_sagas = Arc::new(SubSagas::new(Arc::clone(&records), Arc::clone(&starter)));
        let step_locks = Arc::new(StepLocks::new(Arc::clone(&records), Arc::clone(&locks)));
        let builtin = BuiltinSteps::new(Arc::clone(&records), Arc::clone(&locks));
        let external = Arc::new(ExternalCalls::new(
            Arc::clone(&attempts),
            Arc::clone(&step_locks),
            Arc::clone(&leases),
            Arc::clone(&records),
            progress,
            builtin,
            sub_sagas,
        ));
        let transactions = Arc::new(Transactions::new(attempts, step_locks, Arc::clone(&leases), records));
        let recovery = Arc::new(Recovery::new(Arc::clone(&external), Arc::clone(&transactions)));
        let host = Arc::new(Host::new(Arc::clone(&committer), Arc::clone(&starter), Arc::clone(&messages), validator));
        let coordinator =
            Arc::new(Coordinator::new(Arc::clone(&committer), Arc::clone(&decider), Arc::clone(&inline_steps)));
        let choreography = Arc::new(Choreography::new(host));
        let inbox = Arc::new(Inbox::new(Arc::clone(&coordinator), choreography));
        let poller = Arc::new(Poller::new(Arc::clone(&committer), Arc::clone(&decider), inline_steps));
        let executors: Arc<dyn Dispatch<S>> = Arc::new(Executors { external: Arc::clone(&external), coordinator });
        scheduler.dispatch_to(&executors);
        let hints = Arc::new(HintListener::new(Arc::clone(&committer)));
        let maintenance = Arc::new(Maintenance::new(Arc::clone(&poller), messages, archive));
        Self {
            ctx,
            membership,
            outcomes,
            relay,
            committer,
            decider,
            starter,
            leases,
            locks,
            external,
            transactions,
            recovery,
            inbox,
            poller,
            statistics: counters,
            hints,
            maintenance,
            _executors: executors,
        }
    }
}

fn batch_limits<S: Store>(ctx: &EngineContext<S>) -> BatchLimits {
    let steps = ctx.definitions.values().flat_map(|definition| &definition.steps);
    let batch_steps = steps.filter(|step| matches!(step.run, StepRun::Batch(_))).map(|step| step.name);
    BatchLimits::new(ctx.batch_max(), ctx.settings.batch_inputs_max, batch_steps)
}

impl<S: Store> Engine<S> {
    /// What an administrator's actions use.
    pub(crate) fn admin(&self) -> AdminRuntime<S> {
        AdminRuntime::new(&self.committer, &self.decider)
    }
}

/// The components that run commands without a worker.
struct Executors<S: Store> {
    external: Arc<ExternalCalls<S>>,
    coordinator: Arc<Coordinator<S>>,
}

impl<S: Store> Dispatch<S> for Executors<S> {
    fn start_call(&self, item: WorkItem<S>) {
        self.external.start_call(item);
    }

    fn resend(&self, item: WorkItem<S>) {
        self.coordinator.resend(item);
    }
}
