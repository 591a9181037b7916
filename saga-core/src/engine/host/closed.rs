//! What a host does when sagas that it did steps for are closed.

use super::host::Host;
use crate::engine::message::{HandleError, InboundMessage, closed_sagas};
use crate::key::{Key, Tenant};
use crate::log;
use crate::store::{Changes, DeadLetterReason, DefinitionId, Store};

impl<S: Store> Host<S> {
    /// Dates the steps that were done for closed sagas. They are kept for as long as a message of such a saga may still be
    /// accepted.
    pub(crate) async fn handle_closed(&self, inbound: &InboundMessage) -> Result<(), HandleError> {
        let message = &inbound.message;
        let keys = closed_sagas(&message.payload)
            .map_err(|error| HandleError::Dead(DeadLetterReason::Undecodable, format!("its content: {error}")))?;
        // An older one may be about a saga whose key was used again.
        if self.check_age(inbound).is_ok() {
            let closed: Vec<(Tenant, Key)> = keys.into_iter().map(|key| (message.tenant.clone(), key)).collect();
            let dated = self
                .ctx
                .store
                .expire_hosted(&self.closable(inbound), &closed, self.ctx.settings.hosted_retention())
                .await?;
            log::debug!(count = dated, "hosted steps expire");
        }
        self.committer.recorder.record(inbound.handled(Changes::default())).await?.ok();
        Ok(())
    }

    /// The definitions of the steps that the sender may ask this service for.
    fn closable(&self, inbound: &InboundMessage) -> Vec<DefinitionId> {
        let sender = inbound.message.headers.reply_to.as_deref().unwrap_or_default();
        let of_service = self
            .ctx
            .hosted
            .iter()
            .filter(|((service, step), _)| *service == inbound.source && self.ctx.authorizer.may_ask(sender, step));
        of_service.map(|(_, definition)| definition.id.clone()).collect()
    }
}
