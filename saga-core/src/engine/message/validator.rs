//! Whether a message can be handled at all, before it is stored.

use std::sync::Arc;

use super::handle_error::HandleError;
use super::step_reference::step_or_item;
use crate::engine::context::EngineContext;
use crate::engine::store_calls::StoreCalls;
use crate::key::{Key, check_step_name};
use crate::store::{DeadLetterReason, Message, MessageKind, Store};

/// Validates messages that arrive.
pub(crate) struct Validator<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) store_calls: Arc<StoreCalls<S>>,
}

impl<S: Store> Validator<S> {
    pub(crate) fn new(ctx: Arc<EngineContext<S>>, store_calls: Arc<StoreCalls<S>>) -> Self {
        Self { ctx, store_calls }
    }
}

impl<S: Store> Validator<S> {
    /// Whether a message can be handled at all. What needs the store is looked at later.
    pub(crate) fn check(&self, message: &Message, service: &str) -> Result<(), HandleError> {
        let dead = |reason, detail: String| Err(HandleError::Dead(reason, detail));
        let (bytes, max) = (message.payload.len(), self.bytes_max(message.kind));
        if bytes > max {
            return dead(DeadLetterReason::TooLarge, format!("it has {bytes} bytes; at most {max} are taken"));
        }
        if let Some(tenants) = &self.ctx.settings.tenants
            && !tenants.contains(&message.tenant)
        {
            return dead(DeadLetterReason::OtherTenant, format!("the tenant `{}` is not served here", message.tenant));
        }
        match message.kind {
            MessageKind::Event => return self.check_event(message, service),
            MessageKind::Fact => return self.check_fact(message, service),
            MessageKind::Closed => return check_closed(message, service),
            MessageKind::Command | MessageKind::Undo | MessageKind::Reply | MessageKind::Report => {}
        }
        let headers = &message.headers;
        let missing = |name| dead(DeadLetterReason::Unreadable, format!("the header `{name}` is missing"));
        let Some(key) = &headers.saga_key else { return missing("saga-cause") };
        let Some(step) = &headers.step else { return missing("saga-step") };
        let name = match Key::from_message(key).map_err(|problem| problem.to_string()).and_then(|_| step_or_item(step))
        {
            Ok((name, _)) => name,
            Err(problem) => return dead(DeadLetterReason::Unreadable, problem),
        };
        match message.kind {
            MessageKind::Reply | MessageKind::Report if headers.correlation.is_none() => missing("saga-correlation"),
            MessageKind::Reply if headers.answer.is_none() => missing("saga-answer"),
            MessageKind::Reply | MessageKind::Report | MessageKind::Event | MessageKind::Fact | MessageKind::Closed => {
                Ok(())
            }
            MessageKind::Command | MessageKind::Undo => {
                let Some(reply_to) = &headers.reply_to else { return missing("saga-reply-to") };
                if let Err(problem) = check_step_name(reply_to) {
                    return dead(DeadLetterReason::Unreadable, format!("in the header `saga-reply-to` {problem}"));
                }
                let addressed = headers.service.as_deref().unwrap_or(service);
                if addressed != service || self.hosted(service, name).is_none() {
                    let detail = format!("the step `{step}` of the service `{addressed}` is not hosted here");
                    return dead(DeadLetterReason::UnknownStep, detail);
                }
                Ok(())
            }
        }
    }

    /// How long the content of a message may be.
    pub(crate) fn bytes_max(&self, kind: MessageKind) -> usize {
        let settings = &self.ctx.settings;
        if kind == MessageKind::Undo { settings.undo_bytes_max() } else { settings.payload_bytes_max }
    }
}

/// Whether a message that closes sagas says who it is from, and is for this service.
fn check_closed(message: &Message, service: &str) -> Result<(), HandleError> {
    let dead = |reason, detail: String| Err(HandleError::Dead(reason, detail));
    let headers = &message.headers;
    let Some(from) = &headers.reply_to else {
        return dead(DeadLetterReason::Unreadable, "the header `saga-reply-to` is missing".to_owned());
    };
    if let Err(problem) = check_step_name(from) {
        return dead(DeadLetterReason::Unreadable, format!("in the header `saga-reply-to` {problem}"));
    }
    match headers.service.as_deref() {
        Some(addressed) if addressed != service => {
            dead(DeadLetterReason::UnknownStep, format!("the service `{addressed}` is not hosted here"))
        }
        _ => Ok(()),
    }
}
