//! What clients and operators do about sagas that are purged, or are not to be.

use std::collections::BTreeSet;
use std::time::Duration;

use saga_core::env::Environment;
use saga_core::store::{Expiry, Purge, SagaRow, Sagas, Status};
use saga_core::{Key, Tenant};

use super::client::Client;
use crate::checker::{Age, SagaPlan, What};
use crate::sim::sagas::{SERVICES, tenant_of};
use crate::sim::schedule::RetentionPlan;
use crate::sim::world::{Fault, saga_in};

const LOOK_EVERY: Duration = Duration::from_millis(700);
/// For how long a saga is exempt at most.
const EXEMPT_MAX: Duration = Duration::from_secs(200);

impl Client {
    /// Starts the saga when the one that had its key is deleted.
    pub(crate) async fn start_when_deleted(self, of: u32) {
        if self.waits_for(of, Age::Deleted).await {
            self.world.hit(Fault::KeyReused);
            self.start_at(Duration::ZERO).await;
        }
    }

    /// Repeats the start when only a tombstone of the saga is left.
    pub(crate) async fn repeat_at_tombstone(self) {
        if self.waits_for(self.saga, Age::Tombstone).await {
            let answer = self.start(&self.any_live().await).await;
            self.world.hit_if(answer.is_some(), Fault::TombstoneKnown);
        }
    }

    /// Whether so little was left of that saga in time.
    async fn waits_for(&self, saga: u32, age: Age) -> bool {
        while self.world.purges.age(saga) != Some(age) {
            // A host answers from what it keeps: if it never learns that the saga is closed, or has an open dead letter about it.
            if self.world.is_purging_over()
                || self.world.is_closed_lost()
                || self.world.purges.is_hosted_kept()
                || self.world.purges.age(saga) == Some(Age::Deleted)
            {
                return false;
            }
            self.world.env.sleep(LOOK_EVERY).await;
        }
        true
    }

    /// Exempts the saga from being purged when it has ended, and takes that back later.
    pub(crate) async fn exempt_for_a_while(self, plan: SagaPlan, retention: RetentionPlan) {
        let tenant = tenant_of(&plan.tenant);
        let Ok(key) = Key::from_stored(&plan.key) else { return };
        let Some(status) = self.end_of(&tenant, &key).await else { return };
        if self.set_expiry(&tenant, &key, None).await != Some(true) {
            return;
        }
        // The answer comes after the commit, so that it was purged before that or not at all.
        self.world.enter_purges().await;
        self.world.enter(What::Exempted { saga: self.saga });
        self.world.hit(Fault::Exempted);
        self.world.wait_up_to(EXEMPT_MAX).await;
        self.world.enter(What::Unexempted { saga: self.saga });
        let full = if status == Status::Completed { retention.completed } else { retention.compensated };
        let hosts: BTreeSet<u8> =
            plan.variants.iter().flat_map(|variant| &variant.steps).filter_map(|step| step.host).collect();
        let hosts = hosts.into_iter().map(|host| SERVICES[usize::from(host) - 1].to_owned()).collect();
        let expiry = Expiry { tombstone_in: full, delete_in: retention.key.max(full), hosts };
        while self.set_expiry(&tenant, &key, Some(expiry.clone())).await.is_none() {
            self.world.env.sleep(LOOK_EVERY).await;
        }
    }

    async fn end_of(&self, tenant: &Tenant, key: &Key) -> Option<Status> {
        while !self.world.is_purging_over() && self.world.purges.age(self.saga).is_none() {
            let row = self.world.purges.store(0).saga(tenant, key).await.ok().flatten();
            let is_own = |row: &SagaRow| row.status.is_ended() && saga_in(&row.input) == Some(self.saga);
            if let Some(row) = row.filter(is_own) {
                return Some(row.status);
            }
            self.world.env.sleep(LOOK_EVERY).await;
        }
        None
    }

    /// Nothing where it is not known what became of it.
    async fn set_expiry(&self, tenant: &Tenant, key: &Key, expiry: Option<Expiry>) -> Option<bool> {
        let (live, tenant, key) = (self.any_live().await, tenant.clone(), key.clone());
        let asked = live.ask(move |runtime| {
            Box::pin(async move { runtime.store().set_expiry(&tenant, &key, expiry.as_ref()).await })
        });
        asked.await.and_then(Result::ok)
    }
}
