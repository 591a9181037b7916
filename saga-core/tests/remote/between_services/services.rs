//! Two services on stores of their own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::saga::StepBuilder;
use saga_core::{Outcome, Runtime, Saga, Service, Settings};
use tokio::sync::watch;

use crate::between_services::commit_fates::Commits;
use crate::between_services::steps::{Gate, LastStep, charge_card, confirm, contracts, reserve, send_receipt};
use crate::between_services::transport::Failing;

/// Two services, each with a store of its own.
pub(crate) struct Services {
    pub(crate) saga: Saga<MemoryStore, u64>,
    /// The same with two steps of the other service at once.
    pub(crate) parallel: Saga<MemoryStore, u64>,
    pub(crate) orders: Runtime<MemoryStore>,
    pub(crate) payments: Runtime<MemoryStore>,
    pub(crate) transport: Failing,
    pub(crate) of_orders: Commits,
    pub(crate) of_payments: Commits,
    charged: MemoryStore,
    pub(crate) fails: Arc<AtomicBool>,
    pub(crate) doubles: Arc<AtomicBool>,
    pub(crate) repeats: Arc<AtomicBool>,
    pub(crate) gate: Gate,
    pub(crate) last_step: LastStep,
}

impl Services {
    pub(crate) async fn start() -> Self {
        let (of_orders, of_payments) = (Commits::default(), Commits::default());
        let (fails, doubles, repeats, gate) = (Arc::default(), Arc::default(), Arc::default(), Gate::open());
        let inner = MemoryTransport::new();
        let (is_failing, is_doubling) = (Arc::clone(&fails), Arc::clone(&doubles));
        let transport = Failing { inner, fails: is_failing, doubles: is_doubling, repeats: Arc::clone(&repeats) };
        let store = |commits: &Commits| MemoryStore::new().with_commit_hook(Arc::new(commits.clone()));
        // Polls are rare, so that a test sees what is done without one.
        let rare = |settings: &mut Settings| settings.poll_interval = Duration::from_secs(3);
        let charged = store(&of_payments);
        let service = Service::named("payments").host::<charge_card>().host::<send_receipt>().build().unwrap();
        let payments = Runtime::builder(charged.clone()).transport(transport.clone()).service(&service).settings(rare);
        let payments = payments.state(gate.clone()).start().await.unwrap();
        let saga = Saga::named("order").input::<u64>();
        let saga = saga.step::<reserve>().step::<contracts::charge_card>().step::<confirm>().build().unwrap();
        let parallel = Saga::named("receipt").input::<u64>().parallel(|group| {
            let group = group.branch(StepBuilder::step::<contracts::charge_card>);
            group.branch(StepBuilder::step::<contracts::send_receipt>)
        });
        let parallel = parallel.step::<confirm>().build().unwrap();
        let last_step = LastStep { next: Arc::default(), gate: Gate::open(), has_begun: watch::Sender::new(false) };
        let orders = Runtime::builder(store(&of_orders)).transport(transport.clone()).saga(&saga).saga(&parallel);
        let orders = orders.state(last_step.clone()).settings(move |settings| {
            rare(settings);
            settings.service = Some("orders".to_owned());
        });
        let orders = orders.start().await.unwrap();
        Self {
            saga,
            parallel,
            orders,
            payments,
            transport,
            of_orders,
            of_payments,
            charged,
            fails,
            doubles,
            repeats,
            gate,
            last_step,
        }
    }

    /// The same, when the steps and the clocks are known.
    pub(crate) async fn known() -> Self {
        let services = Self::start().await;
        services.order("first").await;
        services.order("second").await;
        services
    }

    pub(crate) fn charged(&self) -> i64 {
        self.charged.read(|table| table.counter("charged"))
    }

    pub(crate) fn confirmed(&self) -> i64 {
        self.orders.store().read(|table| table.counter("confirmed"))
    }

    pub(crate) async fn order(&self, key: &str) {
        let outcome = self.outcome(key).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }

    pub(crate) async fn outcome(&self, key: &str) -> Outcome {
        self.orders.start(&self.saga, key, 7).await.unwrap().outcome().await.unwrap()
    }
}
