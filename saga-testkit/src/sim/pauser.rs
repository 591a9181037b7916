//! People who hold sagas up for a while.

use std::sync::Arc;
use std::time::Duration;

use saga_core::engine::{PauseOutcome, ResumeOutcome, RuntimeError};
use saga_core::env::Environment;

use super::Fault;
use super::client::{Client, tenant_of};
use super::replica::Live;
use crate::checker::What;

/// How long a person waits before he asks again.
const PAUSE_MAX: Duration = Duration::from_millis(1500);
/// How long a saga is held up at most.
const HELD_UP_MAX: Duration = Duration::from_secs(12);
const WHY: &str = "the simulation says so";

#[derive(Debug, Clone, Copy)]
enum Wish {
    Pause,
    Resume,
}

impl Client {
    /// Pauses the saga at that moment and lets it go on later, each until it was answered for certain.
    pub(crate) async fn hold_up_at(self, moment: Duration) {
        self.world.env.sleep(moment).await;
        while self.ask(Wish::Pause).await.is_none() {
            self.world.wait_up_to(PAUSE_MAX).await;
        }
        self.world.wait_up_to(HELD_UP_MAX).await;
        while self.ask(Wish::Resume).await.is_none() {
            self.world.wait_up_to(PAUSE_MAX).await;
        }
    }

    /// Asks a process that lives. It answers nothing when it is to be asked again.
    async fn ask(&self, wish: Wish) -> Option<()> {
        let replica = self.world.draw(|random| Arc::clone(random.pick(&self.replicas)));
        let live = replica.when_live().await;
        match wish {
            Wish::Pause => self.pause(&live).await,
            Wish::Resume => self.resume(&live).await,
        }
    }

    async fn pause(&self, live: &Live) -> Option<()> {
        let call = self.world.recorder.number();
        let (tenant, key) = self.whose();
        self.world.enter(What::PauseCalled { call, saga: self.saga });
        let asked = live
            .ask(move |runtime| Box::pin(async move { runtime.tenant(tenant).admin().control(key).pause(WHY).await }));
        let (is_paused, fault) = match asked.await? {
            Ok(PauseOutcome::Paused) => (true, Fault::SagaPaused),
            Ok(PauseOutcome::Already) => (true, Fault::SagaPausedAgain),
            Err(RuntimeError::Store(_)) => return None,
            Ok(PauseOutcome::Ended(_)) | Err(_) => (false, Fault::PauseTooLate),
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
            Ok(ResumeOutcome::Resumed) => self.world.hit(Fault::SagaResumed),
            Err(RuntimeError::Store(_)) => return None,
            Ok(ResumeOutcome::NotPaused(_)) | Err(_) => {}
        }
        self.world.enter(What::ResumeAnswered { call });
        Some(())
    }

    fn whose(&self) -> (saga_core::Tenant, String) {
        let script = &self.world.scenario.sagas[self.saga as usize];
        (tenant_of(script.tenant), script.key.clone())
    }
}
