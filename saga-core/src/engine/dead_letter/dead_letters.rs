//! Makes dead letters, and refusals to the senders of commands.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::engine::commit::{Committer, changes};
use crate::engine::context::EngineContext;
use crate::engine::lifecycle::backoff_after;
use crate::engine::message::{HandleError, InboundMessage, Validator, fingerprint_of, reason_bytes};
use crate::key::check_step_name;
use crate::log;
use crate::step::Rejection;
use crate::store::{
    Answer, Changes, DeadLetterId, DeadLetterReason, Headers, Message, MessageId, MessageKind, Miss, NewDeadLetter,
    NewMessage, Store,
};
use crate::transport::Unreadable;

fn log_dead_letter(letter: &NewDeadLetter) {
    let NewDeadLetter { id, source: service, detail, .. } = letter;
    let message_id = letter.message.as_ref().map(|message| tracing::field::display(message.id));
    let (letter_id, reason) = (id.0, letter.reason.as_str());
    log::warn!(letter_id, message_id, service, reason, error = detail, "message dead-lettered");
}

/// Stores messages that cannot be handled, and replies to their senders.
pub(crate) struct DeadLetters<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) committer: Arc<Committer<S>>,
    validator: Arc<Validator<S>>,
}

impl<S: Store> DeadLetters<S> {
    pub(crate) fn new(committer: Arc<Committer<S>>, validator: Arc<Validator<S>>) -> Self {
        Self { ctx: Arc::clone(&committer.ctx), committer, validator }
    }
}

impl<S: Store> DeadLetters<S> {
    /// The changes that dead-letter a message without a row; `None` if the runtime stops first.
    pub(crate) async fn dead_letter_changes(
        &self,
        message: &Message,
        source: &str,
        problem: &HandleError,
    ) -> Option<Changes> {
        let HandleError::Dead(reason, detail) = problem else { return Some(Changes::default()) };
        let letter = self.new_dead_letter(message, source, *reason, detail, 1).await?;
        let refusal = self.refusal(message, source, *reason, detail);
        Some(changes::dead_letter(letter, refusal))
    }

    /// The changes that dead-letter a malformed message; `None` if the runtime stops first.
    pub(crate) async fn unreadable_changes(&self, unreadable: &Unreadable, source: &str) -> Option<Changes> {
        let letter = self.new_unreadable(unreadable, source).await?;
        Some(changes::dead_letter(letter, None))
    }

    /// The letter of a malformed message.
    pub(crate) async fn new_unreadable(&self, unreadable: &Unreadable, source: &str) -> Option<NewDeadLetter> {
        let mut hash = Sha256::new();
        hash.update(source.as_bytes());
        if let Some(id) = unreadable.id {
            hash.update(id.0.as_bytes());
        } else {
            for (name, text) in &unreadable.headers {
                hash.update(name.as_bytes());
                hash.update(text.as_bytes());
            }
            hash.update(&unreadable.payload);
        }
        let (id, fingerprint) = (self.dead_letter_id().await?, hash.finalize().into());
        Some(NewDeadLetter {
            headers: unreadable.headers.clone(),
            payload: self.cut(&unreadable.payload),
            ..NewDeadLetter::new(id, fingerprint, DeadLetterReason::Unreadable, &unreadable.problem, source)
        })
    }

    /// Dead-letters a stored message, in the commit that deletes its row.
    pub(crate) async fn dead_letter_handled(
        &self,
        arrived: &InboundMessage,
        problem: &HandleError,
    ) -> Result<(), HandleError> {
        let HandleError::Dead(reason, detail) = problem else { return Ok(()) };
        let later = || HandleError::Later { why: "the store gave no ids".to_owned(), is_counted: false };
        let (message, source) = (&arrived.message, &arrived.source);
        let letter =
            self.new_dead_letter(message, source, *reason, detail, arrived.attempts + 1).await.ok_or_else(later)?;
        let letter_id = letter.id;
        let refusal = self.refusal(message, source, *reason, detail);
        let changes = arrived.handled(changes::dead_letter(letter, refusal));
        match self.committer.recorder.record(changes).await? {
            Ok(()) | Err(Miss::Work(_)) => {
                let (letter_id, message_id, service, reason) = (letter_id.0, message.id, source, reason.as_str());
                log::warn!(letter_id, %message_id, service, reason, error = detail, "message dead-lettered");
                self.committer.outbox.wake_relay();
                Ok(())
            }
            Err(miss) => {
                Err(HandleError::Later { why: format!("it could not be buried: {miss:?}"), is_counted: false })
            }
        }
    }

    /// Stores dead letters that arrived together, in as few commits as possible; `None` if the runtime stops first.
    pub(crate) async fn store_dead_letters(&self, letters: Vec<Changes>) -> Option<()> {
        let mut open = letters;
        for failures in 0.. {
            if open.is_empty() {
                return Some(());
            }
            let answers = self.committer.recorder.record_all(open.clone()).await;
            self.committer.outbox.wake_relay();
            let mut failed = Vec::new();
            for (letter_changes, answer) in open.into_iter().zip(answers) {
                match answer {
                    Ok(_) => letter_changes.dead_letters.iter().for_each(log_dead_letter),
                    Err(error) => failed.push((letter_changes, error)),
                }
            }
            if let Some((_, error)) = failed.first() {
                log::debug!(%error, count = failed.len(), "dead letters not stored");
                if self.ctx.lifecycle.is_stopping() {
                    return None;
                }
                self.ctx.env.sleep(backoff_after(failures)).await;
            }
            open = failed.into_iter().map(|(letter_changes, _)| letter_changes).collect();
        }
        None
    }

    /// The reply to the sender of a command that became a dead letter, if it wants one.
    pub(crate) fn refusal(
        &self,
        message: &Message,
        source: &str,
        reason: DeadLetterReason,
        detail: &str,
    ) -> Option<NewMessage> {
        if !matches!(message.kind, MessageKind::Command | MessageKind::Undo) {
            return None;
        }
        // A forged command may name the id of a real one, whose saga would take this for its reply.
        if reason == DeadLetterReason::NotAuthorized {
            return None;
        }
        let headers = &message.headers;
        let reply_to = headers.reply_to.as_deref().filter(|reply_to| check_step_name(reply_to).is_ok())?;
        // The step of an old message may have been done, and its record deleted.
        let answer = if reason == DeadLetterReason::TooOld { Answer::Unknown } else { Answer::Refused };
        let reason = Rejection::new(format!("{} ({}): {detail}", "it is a dead letter there", reason.as_str()));
        let id = MessageId(self.ctx.random_uuid());
        Some(NewMessage {
            event_type: message.event_type.clone(),
            payload: reason_bytes(&reason),
            headers: Headers {
                answer: Some(answer),
                traceparent: headers.traceparent.clone(),
                ..Headers::of_reply(headers.saga_key.clone()?, headers.step.clone()?, source, reply_to, message.id)
            },
            ..NewMessage::to_service(MessageKind::Reply, id, &message.tenant, reply_to)
        })
    }

    pub(crate) async fn new_dead_letter(
        &self,
        message: &Message,
        source: &str,
        reason: DeadLetterReason,
        detail: &str,
        attempts: u32,
    ) -> Option<NewDeadLetter> {
        let is_whole = message.payload.len() <= self.validator.bytes_max(message.kind);
        let (id, fingerprint) = (self.dead_letter_id().await?, fingerprint_of(source, message.id));
        Some(NewDeadLetter {
            tenant: message.tenant.clone(),
            headers: message.headers.pairs().into_iter().map(|(name, text)| (name.to_owned(), text)).collect(),
            payload: self.cut(&message.payload),
            message: is_whole.then(|| message.clone()),
            attempts,
            ..NewDeadLetter::new(id, fingerprint, reason, detail, source)
        })
    }

    async fn dead_letter_id(&self) -> Option<DeadLetterId> {
        self.committer.store_calls.take_ids(1).await.and_then(|mut ids| ids.next()).map(DeadLetterId)
    }

    /// The part of the content that is kept.
    fn cut(&self, payload: &[u8]) -> Vec<u8> {
        payload[..payload.len().min(self.ctx.settings.payload_bytes_max)].to_vec()
    }
}
