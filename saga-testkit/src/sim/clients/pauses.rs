//! The operator who pauses sagas for a while.

use std::time::Duration;

use saga_core::engine::{ControlOutcome, RuntimeError};
use saga_core::env::Environment;

use super::client::{Client, PAUSE_MAX};
use crate::checker::What;
use crate::sim::sagas::tenant_of;
use crate::sim::world::{Fault, Live};

/// How long a saga is held up at most.
const HELD_UP_MAX: Duration = Duration::from_secs(12);
const WHY: &str = "the simulation says so";

impl Client {
    /// Pauses the saga at that moment and lets it go on later, each until it was answered for certain.
    pub(crate) async fn hold_up_at(self, moment: Duration) {
        self.world.env.sleep(moment).await;
        while self.pause(&self.any_live().await).await.is_none() {
            self.world.wait_up_to(PAUSE_MAX).await;
        }
        self.world.wait_up_to(HELD_UP_MAX).await;
        while self.resume(&self.any_live().await).await.is_none() {
            self.world.wait_up_to(PAUSE_MAX).await;
        }
    }

    async fn pause(&self, live: &Live) -> Option<()> {
        let call = self.world.recorder.number();
        let (tenant, key) = self.whose();
        self.world.enter(What::PauseCalled { call, saga: self.saga });
        let asked = live
            .ask(move |runtime| Box::pin(async move { runtime.tenant(tenant).admin().control(key).pause(WHY).await }));
        let (is_paused, fault) = match asked.await? {
            Ok(ControlOutcome::Applied) => (true, Fault::SagaPaused),
            Ok(ControlOutcome::Already) => (true, Fault::SagaPausedAgain),
            Err(RuntimeError::Store(_)) => return None,
            Ok(ControlOutcome::Ended(_)) | Err(_) => (false, Fault::PauseTooLate),
        };
        self.world.enter(What::PauseAnswered { call, is_paused });
        self.world.hit(fault);
        Some(())
    }

    async fn resume(&self, live: &Live) -> Option<()> {
        let call = self.world.recorder.number();
        let (tenant, key) = self.whose();
        self.world.enter(What::ResumeCalled { call, saga: self.saga });
        let asked = live
            .ask(move |runtime| Box::pin(async move { runtime.tenant(tenant).admin().control(key).resume(WHY).await }));
        match asked.await? {
            Ok(ControlOutcome::Applied) => self.world.hit(Fault::SagaResumed),
            Err(RuntimeError::Store(_)) => return None,
            Ok(ControlOutcome::Already | ControlOutcome::Ended(_)) | Err(_) => {}
        }
        self.world.enter(What::ResumeAnswered { call });
        Some(())
    }

    fn whose(&self) -> (saga_core::Tenant, String) {
        let script = &self.world.scenario.sagas[self.saga as usize];
        (tenant_of(script.tenant), script.key.clone())
    }
}
