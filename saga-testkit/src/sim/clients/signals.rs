//! Signals, as clients send them to sagas that wait for one.

use std::time::Duration;

use saga_core::engine::{self, RuntimeError};
use saga_core::env::Environment as _;

use super::client::{Client, PAUSE_MAX};
use crate::checker::{Receipt, What};
use crate::sim::sagas::{SimSignal, tenant_of};
use crate::sim::world::{Fault, Live};

impl Client {
    /// Sends that signal at that moment, and again until it was answered for certain.
    pub(crate) async fn signal_at(self, moment: Duration, id: u64) {
        self.world.env.sleep(moment).await;
        while self.signal(&self.any_live().await, id).await.is_none() {
            self.world.wait_up_to(PAUSE_MAX).await;
        }
    }

    /// One call of `signal`. It answers nothing when the call is to be repeated.
    async fn signal(&self, live: &Live, id: u64) -> Option<()> {
        let call = self.world.recorder.number();
        let script = &self.world.scenario.sagas[self.saga as usize];
        let (tenant, key) = (tenant_of(script.tenant), script.key.clone());
        self.world.enter(What::SignalCalled { call, saga: self.saga, id });
        let asked = live.ask(move |runtime| {
            Box::pin(async move { runtime.tenant(tenant).signal(key, id.to_string(), &SimSignal { id }).await })
        });
        let (receipt, fault) = match asked.await? {
            Ok(engine::SignalOutcome::Delivered) => (Receipt::Counts, Fault::SignalDelivered),
            Ok(engine::SignalOutcome::Buffered) => (Receipt::Counts, Fault::SignalKept),
            Ok(engine::SignalOutcome::Duplicate) => (Receipt::Known, Fault::SignalKnown),
            Ok(engine::SignalOutcome::TooLate) => (Receipt::Refused, Fault::SignalLate),
            Err(RuntimeError::Store(_)) => return None,
            Err(_) => (Receipt::Refused, Fault::SignalRefused),
        };
        self.world.enter(What::SignalAnswered { call, receipt });
        self.world.hit(fault);
        Some(())
    }
}
