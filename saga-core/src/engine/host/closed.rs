//! What a host does when sagas that it did steps for are closed.

use std::time::Duration;

use super::host::Host;
use crate::engine::message::{HandleError, InboundMessage};
use crate::key::{Key, Tenant};
use crate::log;
use crate::store::{Changes, DefinitionId, Store, Timestamp};

impl<S: Store> Host<S> {
    /// Dates the steps that were done for closed sagas. They are kept for as long as a message of such a saga may still be
    /// accepted.
    ///
    /// An answer has the time of the question. A step that had no date then keeps its record for longer than such an answer is
    /// accepted, so the answer is about this record, and not about that of a later saga under the key.
    pub(crate) async fn handle_closed(
        &self,
        inbound: &InboundMessage,
        sagas: Vec<Key>,
        asked_at: Option<Timestamp>,
    ) -> Result<(), HandleError> {
        // An older one may be about a saga whose key was used again.
        if self.check_age(inbound.age).is_ok() && asked_at.is_none_or(|at| self.is_young_enough(inbound, at)) {
            let tenant = &inbound.message.tenant;
            let closed: Vec<(Tenant, Key)> = sagas.into_iter().map(|key| (tenant.clone(), key)).collect();
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

    /// Whether a question of this host is young enough for its answer to be acted on.
    fn is_young_enough(&self, answer: &InboundMessage, asked_at: Timestamp) -> bool {
        let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let now = answer.message.committed_at.0.saturating_add(micros(answer.age));
        now.saturating_sub(asked_at.0) <= micros(self.ctx.settings.message_age_max())
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
