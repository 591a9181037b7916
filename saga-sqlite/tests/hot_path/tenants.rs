//! Whole sagas of a thousand tenants, each of which has one command at a time.

use saga_core::Settings;
use saga_testkit::hot_path::WholeSagas;

use crate::cost::Cost;
use crate::meter::Meter;
use crate::sagas::create_order;
use crate::support;

/// Each of them has one saga among those that are measured.
const TENANTS: u32 = 1_000;
/// Sagas in flight.
const IN_FLIGHT: u32 = 10;

#[tokio::test]
async fn a_thousand_tenants_that_share_commits_make_few() {
    let Cost { commits, .. } = cost(|settings| settings.tenants_share_commits = true).await;
    assert!(commits <= u64::from(TENANTS / 4), "{commits} commits for {TENANTS} tenants");
}

/// Each transaction has one tenant by default.
#[tokio::test]
async fn a_thousand_tenants_make_a_thousand_commits_by_default() {
    let Cost { commits, .. } = cost(|_| ()).await;
    assert!(commits >= u64::from(TENANTS), "{commits} commits for {TENANTS} tenants");
}

/// Runs a saga of each tenant, with one transaction under way at a time, and answers what they cost.
async fn cost(change: impl FnOnce(&mut Settings)) -> Cost {
    let (_folder, store) = support::store().await;
    let meter = Meter::new(&store).await;
    let mut sagas = WholeSagas::of_tenants(TENANTS, store, create_order(), IN_FLIGHT, change).await;
    sagas.until_spared().await;
    meter.empty_log();
    let cost = meter.of(sagas.rounds(TENANTS / IN_FLIGHT)).await;
    sagas.shutdown().await;
    cost
}
