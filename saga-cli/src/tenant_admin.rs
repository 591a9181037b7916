//! What the commands act on: the sagas of one tenant in the store of the application.

use anyhow::bail;
use saga_core::Tenant;
use saga_core::engine::{SagaAdmin, SagaQuery};
use saga_core::store::{Timestamp, Work as _};

use crate::args::ActorArgs;
use crate::{Admin, OpenStore};

/// The sagas of one tenant, by default those of the default tenant.
pub(crate) struct TenantAdmin<'a, O: OpenStore> {
    admin: &'a Admin<O>,
    tenant: Option<Tenant>,
}

impl<'a, O: OpenStore> TenantAdmin<'a, O> {
    pub(crate) fn new(admin: &'a Admin<O>, tenant: Option<Tenant>) -> Self {
        Self { admin, tenant: tenant.filter(|tenant| !tenant.is_default()) }
    }

    /// The same store, for the sagas of another tenant.
    pub(crate) fn with_tenant(&self, tenant: Option<Tenant>) -> Self {
        Self::new(self.admin, tenant)
    }

    /// The tenant that the command line names.
    pub(crate) fn tenant(&self) -> Option<&Tenant> {
        self.tenant.as_ref()
    }

    /// Reads the sagas and messages, beside the processes that work on the store.
    pub(crate) async fn read(&self) -> anyhow::Result<SagaAdmin<O::Store>> {
        Ok(self.on(self.admin.location.open_read_only().await?))
    }

    /// As [`read`](Self::read), with the time of the store's clock before anything is read.
    pub(crate) async fn read_at(&self) -> anyhow::Result<(SagaAdmin<O::Store>, Timestamp)> {
        let store = self.admin.location.open_read_only().await?;
        let now = store.now().await?;
        Ok((self.on(store), now))
    }

    /// Writes to the store, if there is one already.
    pub(crate) async fn write(&self) -> anyhow::Result<SagaAdmin<O::Store>> {
        self.admin.location.open_read_only().await?;
        Ok(self.on(self.admin.location.open().await?))
    }

    /// Acts on sagas in the name of the operator.
    pub(crate) async fn actor(&self, actor: &ActorArgs) -> anyhow::Result<SagaAdmin<O::Store>> {
        Ok(self.write().await?.actor(actor.name()))
    }

    /// Reads the sagas.
    pub(crate) async fn query(&self) -> anyhow::Result<SagaQuery<O::Store>> {
        Ok(self.read().await?.query())
    }

    fn on(&self, store: O::Store) -> SagaAdmin<O::Store> {
        self.admin.sagas(store).tenant(self.tenant.clone().unwrap_or_default())
    }

    /// A command of the application for the same tenant, as an operator types it.
    pub(crate) fn command_line(&self, command: &str) -> String {
        let tenant = self.tenant.as_ref().map(|tenant| format!(" --tenant {tenant}")).unwrap_or_default();
        format!("{} {command}{tenant}", self.admin.program)
    }

    /// Where the sagas are, in words.
    pub(crate) fn place(&self) -> String {
        let store = self.admin.location.name();
        self.tenant.as_ref().map_or_else(|| store.clone(), |tenant| format!("{store} of the tenant {tenant}"))
    }

    pub(crate) fn no_saga<T>(&self, key: &str) -> anyhow::Result<T> {
        bail!("there is no saga {key} in {}", self.place())
    }
}
