//! Runs scenarios of a file.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use booking::request::BookingRequest;
use cucumber::World as _;
use saga_core::Saga;
use saga_sqlite::SqliteStore;

use crate::carrier::Carrier;
use crate::transcript::Transcript;
use crate::world::Booking;

/// A scenario waits for events and outcomes, and never for this time. It ends a scenario in which one of them does not come.
const LIMIT: Duration = Duration::from_mins(2);

/// What a scenario runs on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) carrier: Carrier,
    /// What the orchestrator runs, if it runs in the test's process.
    pub(crate) definition: fn() -> anyhow::Result<Saga<SqliteStore, BookingRequest>>,
}

/// Runs the scenarios of this name, or all of the file, one after the other.
pub(crate) fn run(feature: &Path, scenario: Option<String>, setting: Setting) -> anyhow::Result<Transcript> {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let run = Booking::cucumber()
        .with_writer(Transcript::default())
        .fail_on_skipped()
        .max_concurrent_scenarios(1)
        .before(move |_, _, _, world| {
            Box::pin(async move {
                if let Err(error) = world.open(setting).await {
                    panic!("the services did not start: {error:#}");
                }
            })
        })
        .after(|_, _, _, _, world| {
            Box::pin(async move {
                if let Some(world) = world {
                    world.close().await;
                }
            })
        })
        .with_default_cli()
        .filter_run(feature, move |_, _, found| scenario.as_ref().is_none_or(|name| *name == found.name));
    let ran = tokio.block_on(async { tokio::time::timeout(LIMIT, run).await }).context("a scenario did not end")?;
    ensure!(ran.scenarios > 0, "not one scenario of {} was run", feature.display());
    Ok(Transcript::clone(&ran))
}
