//! Mistakes about retention that are made on purpose: what is kept gets other dates.

use std::sync::Arc;
use std::time::Duration;

use saga_core::Key;
use saga_core::env::Environment;
use saga_core::store::{Expiry, Purge, Sagas};

use super::world::World;
use crate::checker::SagaPlan;
use crate::sim::sagas::{hosted_key, tenant_of};
use crate::sim::schedule::{Mutant, RetentionPlan};

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a host keeps a step that nothing told it is closed.
const UNTOLD: Duration = Duration::from_secs(3);

/// Changes dates again and again, if such a mistake is planted.
pub(crate) async fn misdate(world: Arc<World>, plans: Vec<SagaPlan>) {
    let Some(retention) = world.scenario.retention.clone() else { return };
    loop {
        world.env.sleep(LOOK_EVERY).await;
        for plan in &plans {
            match world.scenario.mutant {
                Some(Mutant::HostsPurgeUntold) => date_hosted(&world, plan, UNTOLD).await,
                Some(Mutant::ClosesAtTheEnd) if has_ended(&world, plan).await => {
                    date_hosted(&world, plan, Duration::ZERO).await;
                }
                Some(Mutant::ReusesKeysEarly) => forget_key(&world, plan, &retention).await,
                Some(_) => {}
                None => return,
            }
        }
    }
}

async fn has_ended(world: &World, plan: &SagaPlan) -> bool {
    let Ok(key) = Key::from_stored(&plan.key) else { return false };
    let row = world.purges.store(0).saga(&tenant_of(&plan.tenant), &key).await;
    row.is_ok_and(|row| row.is_some_and(|row| row.ended_at.is_some()))
}

/// The steps that are hosted for a saga are deleted that long after their ends.
async fn date_hosted(world: &World, plan: &SagaPlan, delete_in: Duration) {
    let hosted = plan.variants.iter().flat_map(|variant| &variant.steps).filter(|step| step.host.is_some());
    for step in hosted {
        let Ok(key) = Key::from_stored(&hosted_key(&plan.key, step)) else { continue };
        for service in 1..=world.scenario.hosts.len() as u8 {
            let store = world.purges.store(service);
            // Nothing happens to this call, and it changes nothing that has not ended.
            let _ = store.set_expiry(&tenant_of(&plan.tenant), &key, Some(&Expiry::deleted_in(delete_in))).await;
        }
    }
}

/// A tombstone is deleted at once.
async fn forget_key(world: &World, plan: &SagaPlan, retention: &RetentionPlan) {
    let Ok(key) = Key::from_stored(&plan.key) else { return };
    let (store, tenant) = (world.purges.store(0), tenant_of(&plan.tenant));
    let row = store.saga(&tenant, &key).await.ok().flatten();
    if row.is_some_and(|row| row.is_tombstone()) {
        let full = retention.completed.min(retention.compensated);
        // As above.
        let _ = store.set_expiry(&tenant, &key, Some(&Expiry::deleted_in(full))).await;
    }
}
