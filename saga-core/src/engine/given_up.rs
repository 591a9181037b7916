//! What the transport gave up: it becomes a dead letter of the store before it is acknowledged.

use super::choreography::for_service;
use super::shared::Shared;
use super::step_or_item::step_or_item;
use crate::key::Key;
use crate::store::{Changes, DeadReason, Message, MessageKind, NewLetter, Store, StoreError};
use crate::transport::{Death, Unreadable};

/// Under which names a letter keeps what the transport says.
const QUEUE: &str = "x-death-queue";
const REASON: &str = "x-death-reason";

impl<S: Store> Shared<S> {
    /// How what the transport gave up is buried; nothing when the runtime stops first.
    pub(super) async fn burial_of_given_up(
        &self,
        came: &Result<Message, Unreadable>,
        death: &Death,
        service: &str,
        refused: Option<String>,
    ) -> Option<Changes> {
        let Death { queue, reason, deliveries } = death;
        let said = format!("it was given up in the queue `{queue}` after delivery {deliveries}: {reason}");
        let (letter, refusal) = match (came, refused) {
            (Ok(message), Some(detail)) => {
                let detail = format!("{detail}; and {said}");
                (self.letter(message, service, DeadReason::NotAuthorized, &detail, *deliveries).await?, None)
            }
            (Ok(event), None) if event.kind == MessageKind::Event => {
                let event = for_service(event.clone(), service);
                (self.letter(&event, service, DeadReason::GivenUp, &said, *deliveries).await?, None)
            }
            (Ok(message), None) => {
                let letter = self.letter(message, service, DeadReason::GivenUp, &said, *deliveries).await?;
                // One that had been stored before it was given up has had its effect, or will.
                let is_known = self.is_begun(message).await?;
                let refusal = self.refusal(message, service, DeadReason::GivenUp, &said).filter(|_| !is_known);
                (letter, refusal)
            }
            (Err(unreadable), _) => {
                let letter = self.unreadable_letter(unreadable, service).await?;
                let detail = format!("{said}; and {}", unreadable.problem);
                (NewLetter { reason: DeadReason::GivenUp, detail, attempts: *deliveries, ..letter }, None)
            }
        };
        let mut letter = letter;
        letter.headers.extend([(QUEUE.to_owned(), queue.clone()), (REASON.to_owned(), reason.clone())]);
        Some(Changes { letters: vec![letter], messages: refusal.into_iter().collect(), ..Changes::default() })
    }

    /// Whether the step that a message asks for is known here; nothing when the runtime stops before that can be told.
    async fn is_begun(&self, message: &Message) -> Option<bool> {
        self.ask("saga", || self.hosted_row_exists(message)).await
    }

    async fn hosted_row_exists(&self, message: &Message) -> Result<bool, StoreError> {
        let Some(step) = message.headers.step.as_deref().filter(|step| step_or_item(step).is_ok()) else {
            return Ok(false);
        };
        let Ok(key) = Key::from_message(message.headers.saga_key.as_deref().unwrap_or_default()) else {
            return Ok(false);
        };
        Ok(self.store.saga(&message.tenant, &key.hosted(step)).await?.is_some())
    }
}
