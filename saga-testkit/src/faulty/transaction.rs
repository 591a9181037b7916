use async_trait::async_trait;
use saga_core::memory::MemoryConn;
use saga_core::store::{
    Capabilities, Claim, Records, Sagas, Store, StoreError, StoreErrorKind, TransactError, TransactionBody,
};

use super::body::FaultyBody;
use super::{FaultyStore, StoreFlaw};

#[async_trait]
impl Store for FaultyStore {
    type Conn = MemoryConn;

    fn capabilities(&self) -> Capabilities {
        let capabilities = self.inner.capabilities();
        if self.has(StoreFlaw::KeepsFormerMembers) {
            return Capabilities { shared: false, persistent: true, ..capabilities };
        }
        capabilities
    }

    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<MemoryConn>>,
    ) -> Result<(), TransactError> {
        let mut claims = claims;
        if !self.has(StoreFlaw::IgnoresTheEpoch) {
            for claim in &mut claims {
                claim.work = self.inward(claim.work);
            }
        }
        if let (true, Some(first)) = (self.has(StoreFlaw::JudgesByTheFirstTenant), claims.first()) {
            let tenant = first.tenant.clone();
            for claim in &mut claims {
                claim.tenant = tenant.clone();
            }
        }
        if self.has(StoreFlaw::ReleasesRunningRows) {
            let taken = self.noted().last_claim.clone();
            self.noted().running = taken;
        }
        let starts: Vec<_> = claims.iter().filter_map(|claim| claim.start.as_deref().cloned()).collect();
        let made_up = self.made_up_locks(&mut claims).await;
        let body = FaultyBody { body, store: self.clone(), made_up };
        let mut answer = self.inner.transact(claims, Box::new(body)).await;
        self.noted().running.clear();
        self.keep_behind(answer.is_ok()).await?;
        if self.has(StoreFlaw::HidesTheCulprit) {
            answer = answer.map_err(|error| TransactError::from(error.error));
        }
        if answer.is_err() && self.has(StoreFlaw::StartsWhatFails) {
            self.inner.start(starts).await?;
        }
        let stashed = std::mem::take(&mut self.noted().stashed);
        if answer.is_ok() && !stashed.is_empty() {
            let applied = self.inner.record(stashed).await?;
            if applied.iter().any(Result::is_err) {
                let error = StoreError::new(StoreErrorKind::Conflict, "transact", "the second commit missed");
                return Err(error.into());
            }
        }
        answer
    }
}
