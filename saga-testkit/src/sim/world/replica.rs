use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use saga_core::engine::{BuildError, SagaAdmin, SagaStatus};
use saga_core::env::Environment;
use saga_core::memory::MemoryStore;
use saga_core::store::{Sagas, Status};
use saga_core::{Key, Retention, Runtime, Tenant};
use tokio::sync::{Notify, oneshot};

use super::archive::SimArchive;
use super::fault::Fault;
use super::store::{SimStore, reached_from, undisturbed};
use super::transport::SimTransport;
use super::world::{Seat, World};
use crate::checker::What;
use crate::sim::executor::{ProcessId, SimEnvironment};
use crate::sim::sagas::{HOME, SimDefinition, SimService};
use crate::sim::schedule::Mutant;

/// How long a lease lasts: a few times the time limit of a step, and short beside a schedule.
pub(crate) const LEASE: Duration = Duration::from_secs(5);
pub(crate) const MEMBER: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(400);
/// How many sagas a process holds where there is more work than lines: all that there are.
const LOAD_PLACES: usize = 1_024;
/// How long a command waits for its reply before it is sent again, at first.
const ANSWER: Duration = Duration::from_secs(2);
/// How long a process stays at most that does not know all steps.
const IGNORANT_MAX: Duration = Duration::from_secs(6);
/// How long a crashed process stays away at most.
const AWAY_MAX: Duration = Duration::from_secs(3);
/// How far the clocks of two processes may differ.
const CLOCK_MAX_SECONDS: u64 = 1_000_000;

/// A process that runs the engine, and is started again whenever it dies.
#[derive(Debug)]
pub(crate) struct Replica {
    world: Arc<World>,
    store: MemoryStore,
    role: Role,
    live: Mutex<Option<Live>>,
    came_up: Notify,
}

/// What a process does.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    /// The number of its service.
    pub(crate) service: u8,
    /// The sagas that it knows.
    pub(crate) definitions: Arc<[SimDefinition]>,
    /// The steps that it hosts.
    pub(crate) hosts: Vec<SimService>,
    /// Whether there are other services.
    pub(crate) has_others: bool,
}

/// One life of it.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) env: SimEnvironment,
    pub(crate) runtime: Runtime<SimStore>,
    definitions: Arc<[SimDefinition]>,
    /// The data of its service, whatever happens to the calls of this process.
    store: MemoryStore,
}

/// What an operator sees of a saga.
#[derive(Debug)]
pub(crate) enum Looked {
    /// It goes on without a person, or has ended.
    Sound,
    /// It stands still.
    Still(Box<SagaStatus>),
}

impl Replica {
    pub(crate) fn new(world: &Arc<World>, store: &MemoryStore, role: Role) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            store: store.clone(),
            role,
            live: Mutex::default(),
            came_up: Notify::new(),
        })
    }

    /// Starts the process, and starts it again when it died.
    pub(crate) async fn keep_alive(self: Arc<Self>) {
        loop {
            let control = &self.world.control;
            let origin = self.world.draw(|random| random.below(CLOCK_MAX_SECONDS));
            let env = control.process(Duration::from_secs(origin));
            let (started, is_started) = oneshot::channel();
            let replica = Arc::clone(&self);
            let own = env.clone();
            env.spawn(Box::pin(async move {
                // A process that does not start ends, and is started again.
                let _ = started.send(replica.start(own).await);
            }));
            if let Ok(Some(runtime)) = is_started.await {
                let (definitions, store) = (Arc::clone(&self.role.definitions), self.store.clone());
                self.set(Some(Live { env: env.clone(), runtime, definitions, store }));
                self.came_up.notify_waiters();
                control.died(env.process()).await;
                self.set(None);
                self.world.enter(What::Crashed);
                self.world.hit(Fault::Restarted);
            }
            control.kill(env.process());
            let away = if self.world.is_calm() { POLL } else { AWAY_MAX };
            self.world.wait_up_to(away).await;
        }
    }

    async fn start(&self, env: SimEnvironment) -> Option<Runtime<SimStore>> {
        let process = env.process();
        let seat = Seat { world: Arc::clone(&self.world), process, service: self.role.service };
        let store = reached_from(seat.clone(), &self.store);
        let (places, transactions, batch, batch_step, calls, run_on) = self.world.draw(|random| {
            let few = |random: &mut crate::sim::schedule::Random, many: &[usize]| *random.pick(many);
            (
                few(random, &[1, 3, 32]),
                few(random, &[1, 2]),
                few(random, &[1, 4, 16]),
                few(random, &[2, 5, 64]),
                few(random, &[1, 4]),
                few(random, &[1, 2, 16]),
            )
        });
        let mut builder = Runtime::builder(store)
            .environment(Arc::new(env))
            .transport(SimTransport { seat: seat.clone() })
            .state(seat.clone())
            .settings(|settings| {
                settings.lease_ttl = LEASE;
                settings.member_ttl = MEMBER;
                settings.poll_interval = POLL;
                settings.sagas_in_memory_max = places;
                settings.transactions_max = transactions;
                settings.batch_max = batch;
                settings.batch_inputs_max = batch_step;
                settings.external_calls_max = calls;
                settings.steps_per_transaction_max = run_on;
                settings.tenants_share_commits = self.world.scenario.shares_tenants
                    || self.world.scenario.mutant == Some(Mutant::SharesTenantsUnasked);
                settings.shutdown_timeout = LEASE;
                settings.publish_attempts = 2;
                settings.reply_timeout = ANSWER;
                if let Some(load) = &self.world.scenario.load {
                    (settings.external_calls_max, settings.sagas_in_memory_max) = (load.lines, LOAD_PLACES);
                }
                if self.world.scenario.mutant == Some(Mutant::RecoversOneByOne) {
                    settings.recoveries_max = 1;
                }
            });
        if let Some(plan) = &self.world.scenario.retention {
            builder = builder.settings(|settings| {
                settings.retention = plan.messages;
                settings.clock_skew_max = plan.clock_skew_max;
                let asks = self.world.scenario.mutant != Some(Mutant::NeverAsksForClosed);
                settings.closed_asked_after = asks.then_some(plan.closed_asked_after);
                settings.starts_repeat_within = crate::sim::schedule::RetentionPlan::starts_repeat();
                let retention = Retention::of(plan.completed).compensated(plan.compensated).key(plan.key);
                settings.default_retention = Some(retention);
            });
            if plan.has_archive {
                builder = builder.archive(SimArchive { seat });
            }
        }
        for definition in self.role.definitions.iter() {
            builder = builder.saga(&definition.saga).saga(&definition.second);
        }
        if self.role.has_others && self.role.hosts.is_empty() {
            builder = builder.settings(|settings| settings.service = Some(HOME.to_owned()));
        }
        let is_ignorant = !self.role.hosts.is_empty() && self.world.happens(|rates| rates.ignorant);
        if is_ignorant {
            self.world.enter(What::Ignorant);
            self.world.hit(Fault::HostIgnorant);
        }
        for host in &self.role.hosts {
            builder = builder.service(if is_ignorant { &host.before } else { &host.now });
        }
        let runtime = builder.start().await;
        if let (Some(plan), Err(BuildError::Invalid(problems))) = (&self.world.scenario.retention, &runtime) {
            panic!("{plan:?}: {problems:?}");
        }
        let runtime = runtime.ok();
        if is_ignorant {
            self.replace_soon(process);
        }
        runtime
    }

    /// The next version takes over from a process that does not know all steps.
    fn replace_soon(&self, process: ProcessId) {
        let (world, env) = (Arc::clone(&self.world), self.world.env.clone());
        env.spawn(Box::pin(async move {
            world.wait_up_to(IGNORANT_MAX).await;
            world.control.kill(process);
        }));
    }

    /// The number of its service.
    pub(crate) fn service(&self) -> u8 {
        self.role.service
    }

    /// The process, if it runs now.
    pub(crate) fn live(&self) -> Option<Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The process; waits until it runs.
    pub(crate) async fn when_live(&self) -> Live {
        loop {
            let came_up = self.came_up.notified();
            if let Some(live) = self.live() {
                return live;
            }
            came_up.await;
        }
    }

    fn set(&self, live: Option<Live>) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }
}

impl Live {
    /// Looks at a saga that no other one is a step of, as its status does. Most of them need no operator, so that
    /// no status is made of it.
    pub(crate) async fn look_at(&self, tenant: Tenant, key: String) -> Option<Looked> {
        let (definitions, store) = (Arc::clone(&self.definitions), self.store.clone());
        let looked = self.ask(move |runtime| {
            Box::pin(async move {
                let stored = Key::from_stored(&key).ok()?;
                let row = runtime.store().saga(&tenant, &stored).await.ok()??;
                if !matches!(row.status, Status::Stuck | Status::Paused) {
                    return Some(Looked::Sound);
                }
                // Nothing happens to this second look, so that it sees what the first one saw.
                let of_row = |definition: &&SimDefinition| *definition.variant.definition == *row.definition.name;
                let admin =
                    definitions.iter().filter(of_row).fold(SagaAdmin::new(undisturbed(store)), |admin, definition| {
                        admin.saga(&definition.saga).saga(&definition.second)
                    });
                admin.tenant(tenant).query().status(key).await.ok()?.map(|status| Looked::Still(Box::new(status)))
            })
        });
        looked.await.flatten()
    }

    /// Runs something in this process. Nothing if the process dies before it ends.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(Runtime<SimStore>) -> std::pin::Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let question = question(self.runtime.clone());
        self.env.spawn(Box::pin(async move {
            // The caller may have stopped waiting.
            let _ = answer.send(question.await);
        }));
        answered.await.ok()
    }
}
