//! The archive of the simulation.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::env::Environment;
use saga_core::store::{Archive, ArchiveBatch, ArchiveError, ArchivedSaga};

use super::fault::Fault;
use super::purge_log::{row_of, saga_in};
use super::world::Seat;
use crate::checker::What;
use crate::sim::schedule::Mutant;

/// How late the mutant archives.
const LATE: Duration = Duration::from_secs(1);

/// Twice the lease of a process.
const SLOW_MAX: Duration = Duration::from_secs(10);

/// Writes down what it got. It may fail, and its process may crash behind it.
#[derive(Debug)]
pub(crate) struct SimArchive {
    pub(crate) seat: Seat,
}

#[async_trait]
impl Archive for SimArchive {
    async fn store(&self, batch: &ArchiveBatch) -> Result<(), ArchiveError> {
        let world = &self.seat.world;
        let Some(plan) = &world.scenario.retention else { return Ok(()) };
        if !world.is_calm() && world.draw(|random| random.per_mille(plan.archive_fails)) {
            world.hit(Fault::ArchiveFailed);
            return Err("the archive cannot be reached".into());
        }
        if !world.is_calm() && world.draw(|random| random.per_mille(plan.archive_fails)) {
            world.hit(Fault::ArchiveSlow);
            // The call of one that is slower than the lease is dropped, and has kept nothing.
            world.wait_up_to(SLOW_MAX).await;
        }
        let service = self.seat.service;
        let entries = batch.sagas().iter().map(|saga| What::Archived {
            service,
            saga: saga_in(input_of(saga).as_bytes()).unwrap_or(u32::MAX),
            row: row_of(service, &saga.key),
            revision: saga.revision,
        });
        let entries: Vec<What> = entries.collect();
        if world.scenario.mutant == Some(Mutant::ArchivesLate) {
            let (world, env) = (Arc::clone(world), world.env.clone());
            env.spawn(Box::pin(async move {
                world.env.sleep(LATE).await;
                for entry in entries {
                    world.enter(entry);
                }
            }));
            return Ok(());
        }
        for entry in entries {
            self.seat.enter(entry);
        }
        world.hit(Fault::Archived);
        if !world.is_calm() && world.draw(|random| random.per_mille(plan.archive_crashes)) {
            world.hit(Fault::CrashAfterArchive);
            world.control.kill(self.seat.process);
            pending::<()>().await;
        }
        Ok(())
    }
}

/// The input, as the archive has it.
fn input_of(saga: &ArchivedSaga) -> String {
    serde_json::to_value(saga).map(|json| json["input"].to_string()).unwrap_or_default()
}
