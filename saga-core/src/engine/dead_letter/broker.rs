//! Dead letters of the broker: each becomes a dead letter of the store before it is acknowledged.

use super::dead_letters::DeadLetters;
use crate::engine::commit::changes;
use crate::engine::message::{for_service, step_or_item};
use crate::engine::store_calls::or_unreadable;
use crate::key::Key;
use crate::store::{Changes, DeadLetterReason, Message, MessageKind, NewDeadLetter, Store, StoreError};
use crate::transport::{DeadLetterInfo, Unreadable};

/// The headers of a letter that name the queue and the reason of the broker.
const QUEUE: &str = "x-death-queue";

const REASON: &str = "x-death-reason";

impl<S: Store> DeadLetters<S> {
    /// The changes that store a dead letter of the broker; `None` if the runtime stops first.
    pub(crate) async fn broker_dead_letter_changes(
        &self,
        received: &Result<Message, Unreadable>,
        death: &DeadLetterInfo,
        service: &str,
        refused: Option<String>,
    ) -> Option<Changes> {
        let DeadLetterInfo { queue, reason, deliveries } = death;
        let broker_detail = format!("it was given up in the queue `{queue}` after delivery {deliveries}: {reason}");
        let (letter, refusal) = match (received, refused) {
            (Ok(message), Some(detail)) => {
                let detail = format!("{detail}; and {broker_detail}");
                (
                    self.new_dead_letter(message, service, DeadLetterReason::NotAuthorized, &detail, *deliveries)
                        .await?,
                    None,
                )
            }
            (Ok(event), None) if event.kind == MessageKind::Event => {
                let event = for_service(event.clone(), service);
                (
                    self.new_dead_letter(&event, service, DeadLetterReason::DeliveryLimit, &broker_detail, *deliveries)
                        .await?,
                    None,
                )
            }
            (Ok(message), None) => {
                let letter = self
                    .new_dead_letter(message, service, DeadLetterReason::DeliveryLimit, &broker_detail, *deliveries)
                    .await?;
                // If the message was also stored, it has had its effect, or will.
                let is_known = self.is_begun(message).await?;
                let refusal = self
                    .refusal(message, service, DeadLetterReason::DeliveryLimit, &broker_detail)
                    .filter(|_| !is_known);
                (letter, refusal)
            }
            (Err(unreadable), _) => {
                let letter = self.new_unreadable(unreadable, service).await?;
                let detail = format!("{broker_detail}; and {}", unreadable.problem);
                (
                    NewDeadLetter { reason: DeadLetterReason::DeliveryLimit, detail, attempts: *deliveries, ..letter },
                    None,
                )
            }
        };
        let mut letter = letter;
        letter.headers.extend([(QUEUE.to_owned(), queue.clone()), (REASON.to_owned(), reason.clone())]);
        Some(changes::dead_letter(letter, refusal))
    }

    /// Whether the step of a message has a row here; `None` if the runtime stops first.
    async fn is_begun(&self, message: &Message) -> Option<bool> {
        let read = || or_unreadable(self.hosted_row_exists(message));
        // A row that cannot be read is there.
        Some(self.committer.store_calls.retry_store("saga", read).await?.unwrap_or(true))
    }

    async fn hosted_row_exists(&self, message: &Message) -> Result<bool, StoreError> {
        let Some(step) = message.headers.step.as_deref().filter(|step| step_or_item(step).is_ok()) else {
            return Ok(false);
        };
        let Ok(key) = Key::from_message(message.headers.saga_key.as_deref().unwrap_or_default()) else {
            return Ok(false);
        };
        Ok(self.ctx.store.saga(&message.tenant, &key.hosted(step)).await?.is_some())
    }
}
