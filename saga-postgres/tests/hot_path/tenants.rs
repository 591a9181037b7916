//! Whole sagas of a thousand tenants, each of which has one command at a time.

use crate::cost::Cost;
use crate::sagas::{BATCH, IN_FLIGHT, bound_of_rounds, cost_of_tenants};

/// Each of them has one saga among those that are measured.
const TENANTS: u32 = 1_000;

#[tokio::test]
async fn a_thousand_tenants_that_share_commits_make_hardly_more_commits_than_one() {
    let cost = cost_of_tenants(TENANTS, |settings| settings.tenants_share_commits = true).await;
    // How many commands share a commit depends on how the transactions take turns.
    let (commits, bound) = (cost.commits, 2 * bound_of_rounds(BATCH, TENANTS / IN_FLIGHT).commits);
    assert!(commits <= bound, "{commits} commits for {TENANTS} tenants; {bound} are twice those of one tenant");
}

/// Each transaction has one tenant by default.
#[tokio::test]
async fn a_thousand_tenants_make_a_thousand_commits_by_default() {
    let Cost { commits, .. } = cost_of_tenants(TENANTS, |_| ()).await;
    assert!(commits >= u64::from(TENANTS), "{commits} commits for {TENANTS} tenants");
}
