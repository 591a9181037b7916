//! The clients, which start and cancel sagas, and wait for their ends.

use std::sync::Arc;
use std::time::Duration;

use saga_core::engine::{ControlOutcome, Outcome, RuntimeError, StartError};
use saga_core::env::Environment;

use saga_core::SagaHandle;
use saga_core::store::Status;

use crate::checker::{Answer, Standing, What};
use crate::sim::sagas::{SimDefinition, SimInput, tenant_of};
use crate::sim::world::{Fault, Live, Replica, SimStore, World};

/// How long a client waits before it tries again.
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(1500);
/// How long a client waits for a call that it drops.
const PATIENCE_MAX: Duration = Duration::from_millis(20);

/// What a client knows.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) world: Arc<World>,
    pub(crate) replicas: Vec<Arc<Replica>>,
    pub(crate) definitions: Arc<[SimDefinition]>,
    /// Which saga of the scenario, and which variant of it.
    pub(crate) saga: u32,
    pub(crate) variant: u8,
}

impl Client {
    /// Starts the saga at that moment, and again until it was answered for certain.
    pub(crate) async fn start_at(self, moment: Duration) {
        self.world.env.sleep(moment).await;
        while self.start(&self.any_live().await).await.is_none() {
            self.world.wait_up_to(PAUSE_MAX).await;
        }
    }

    /// A live process of the sagas' service.
    pub(crate) async fn any_live(&self) -> Live {
        let replica = self.world.draw(|random| Arc::clone(random.pick(&self.replicas)));
        replica.when_live().await
    }

    /// One call of `start`. It answers nothing when the call is to be repeated.
    pub(crate) async fn start(&self, live: &Live) -> Option<Answer> {
        let call = self.world.recorder.number();
        let (world, client) = (Arc::clone(&self.world), self.clone());
        let script = &world.scenario.sagas[self.saga as usize];
        let definition = self.definitions[script.variants[usize::from(self.variant)]].saga.clone();
        let input = SimInput { saga: self.saga, variant: self.variant, reads: None, item: 0 };
        let (tenant, key, time) = (tenant_of(script.tenant), script.key.clone(), script.time);
        self.world.enter(What::StartCalled { call, saga: self.saga, variant: self.variant });
        let is_dropped = self.world.happens(|rates| rates.client_drops);
        let asked = live.ask(move |runtime| {
            Box::pin(async move {
                let runtime = runtime.tenant(tenant);
                let start = async {
                    let micros = Duration::from_micros;
                    match (time.begins_in, time.within) {
                        (0, None) => runtime.start(&definition, key, input).await,
                        (0, Some(within)) => runtime.start(&definition, key, input).within(micros(within)).await,
                        (later, _) => runtime.start(&definition, key, input).after(micros(later)).await,
                    }
                };
                let started = if is_dropped { client.drop_soon(start).await? } else { start.await };
                let answer = answer_of(&started);
                client.world.enter(What::StartAnswered { call, answer });
                client.note(answer);
                if let Ok(running) = started {
                    client.follow(running);
                }
                Some(answer)
            })
        });
        asked.await.flatten().filter(|answer| *answer != Answer::Failed)
    }

    /// Waits for a call no longer than it takes to lose patience.
    async fn drop_soon<T>(&self, start: impl Future<Output = T>) -> Option<T> {
        let patience = self.world.draw(|random| random.below(PATIENCE_MAX.as_nanos() as u64));
        tokio::select! {
            biased;
            () = self.world.env.sleep(Duration::from_nanos(patience)) => {
                self.world.hit(Fault::StartDropped);
                None
            }
            started = start => Some(started),
        }
    }

    /// Cancels the saga at that moment, and again until it was answered for certain.
    pub(crate) async fn cancel_at(self, moment: Duration) {
        self.world.env.sleep(moment).await;
        while self.cancel(&self.any_live().await).await.is_none() {
            self.world.wait_up_to(PAUSE_MAX).await;
        }
    }

    /// One call of `cancel`. It answers nothing when the call is to be repeated.
    async fn cancel(&self, live: &Live) -> Option<()> {
        let call = self.world.recorder.number();
        let script = &self.world.scenario.sagas[self.saga as usize];
        let (tenant, key) = (tenant_of(script.tenant), script.key.clone());
        self.world.enter(What::CancelCalled { call, saga: self.saga });
        let asked = live.ask(move |runtime| {
            Box::pin(async move { runtime.tenant(tenant).cancel(key, "the simulation says so").await })
        });
        let (is_turned, fault) = match asked.await? {
            Ok(ControlOutcome::Applied) => (true, Fault::Cancelled),
            Ok(ControlOutcome::Already | ControlOutcome::Ended(Status::Compensated)) => (true, Fault::CancelledAgain),
            Ok(ControlOutcome::Ended(_)) => (false, Fault::CancelledAgain),
            Err(RuntimeError::Store(_)) => return None,
            Err(_) => (false, Fault::CancelRefused),
        };
        self.world.enter(What::CancelAnswered { call, is_turned });
        self.world.hit(fault);
        Some(())
    }

    fn note(&self, answer: Answer) {
        match answer {
            Answer::Started { is_new: Some(false) } => self.world.hit(Fault::StartedTwice),
            Answer::Refused => self.world.hit(Fault::StartRefused),
            Answer::Failed => self.world.hit(Fault::StartFailed),
            Answer::Started { .. } => {}
        }
    }

    /// Waits for the end, in the process that answered.
    fn follow(&self, running: SagaHandle<SimStore>) {
        let (world, saga) = (Arc::clone(&self.world), self.saga);
        let env = world.env.clone();
        env.spawn(Box::pin(async move {
            if let Ok(outcome) = running.closed().await {
                world.enter(What::OutcomeSeen { saga, standing: standing_of(&outcome) });
            }
        }));
    }
}

pub(crate) fn standing_of(outcome: &Outcome) -> Standing {
    match outcome {
        Outcome::Completed { .. } | Outcome::Tombstone { status: Status::Completed, .. } => Standing::Completed,
        Outcome::Compensated { .. } | Outcome::Tombstone { .. } => Standing::Compensated,
        Outcome::Stuck { .. } => Standing::Stuck,
    }
}

fn answer_of(started: &Result<SagaHandle<SimStore>, StartError>) -> Answer {
    match started {
        Ok(running) => Answer::Started { is_new: Some(!running.already_started()) },
        Err(StartError::PayloadMismatch { .. } | StartError::OtherSaga { .. }) => Answer::Refused,
        Err(_) => Answer::Failed,
    }
}
