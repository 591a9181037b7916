//! Sagas that move to another version while everything else goes on. The steps are the same there, so that the checker
//! holds them to what it knows, and the arms of choices stand in another order; whether a move may be made at all is what
//! the schedules try.

use std::time::Duration;

use saga_core::engine::RuntimeError;
use saga_core::env::Environment;

use saga_core::Migration;

use super::client::Client;
use crate::sim::sagas::{SimDefinition, tenant_of};
use crate::sim::world::{Fault, Live};

/// How long the operator waits after the answer that a saga is busy.
const PAUSE_MAX: Duration = Duration::from_millis(900);
/// How often a move is tried: a saga may be busy for as long as it lives.
const TRIES_MAX: usize = 30;

impl Client {
    /// Moves the saga at that moment, and again until it has moved, or cannot.
    pub(crate) async fn move_at(self, moment: Duration) {
        self.world.env.sleep(moment).await;
        for _ in 0..TRIES_MAX {
            if self.move_once(&self.any_live().await).await {
                return;
            }
            self.world.wait_up_to(PAUSE_MAX).await;
        }
    }

    /// One try; says whether there is nothing more to be done.
    async fn move_once(&self, live: &Live) -> bool {
        let script = &self.world.scenario.sagas[self.saga as usize];
        let SimDefinition { saga: first, second, .. } = &self.definitions[script.variants[usize::from(self.variant)]];
        let Ok(migration) = Migration::between(first, second).build() else { return true };
        let (tenant, key) = (tenant_of(script.tenant), script.key.clone());
        let asked = live.ask(move |runtime| {
            Box::pin(async move {
                runtime.tenant(tenant).admin().control(key).migrate(&migration, "the simulation says so").await
            })
        });
        match asked.await {
            Some(Ok(())) => {
                self.world.hit(Fault::Moved);
                if !first.names_in_arms().is_empty() {
                    self.world.hit(Fault::MovedWithChoices);
                }
                true
            }
            Some(Err(RuntimeError::Busy { .. })) => {
                self.world.hit(Fault::MoveBusy);
                false
            }
            Some(Err(RuntimeError::Refused { .. })) => {
                self.world.hit(Fault::MoveRefused);
                true
            }
            // It is not started yet, the store fails, or the process died.
            Some(Err(_)) | None => false,
        }
    }
}
