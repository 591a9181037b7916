//! Messages that tell a host which sagas are closed: their records are deleted, so nothing more will be asked for them.

use serde::{Deserialize, Serialize};

use super::messages::Messages;
use crate::engine::context::random_uuid;
use crate::key::{Key, Tenant};
use crate::store::{Headers, MessageId, MessageKind, NewMessage};

/// How many sagas one message names at most.
pub(crate) const CLOSED_MAX: usize = 500;

/// The content: the keys of the sagas.
#[derive(Serialize, Deserialize)]
struct ClosedContent {
    sagas: Vec<String>,
}

impl Messages {
    /// Tells a service that did steps of these sagas that they are closed.
    pub(crate) fn closed_message(&self, tenant: &Tenant, host: &str, sagas: &[&Key]) -> NewMessage {
        let content = ClosedContent { sagas: sagas.iter().map(ToString::to_string).collect() };
        let id = MessageId(random_uuid(&*self.env));
        NewMessage {
            event_type: "closed".to_owned(),
            // Texts always encode.
            payload: serde_json::to_vec(&content).unwrap_or_default(),
            headers: Headers {
                service: Some(host.to_owned()),
                reply_to: self.settings.service.clone(),
                ..Headers::default()
            },
            ..NewMessage::to_service(MessageKind::Closed, id, tenant, host)
        }
    }
}

/// The keys in the content of such a message.
///
/// # Errors
/// Says what is wrong with the content.
pub(crate) fn closed_sagas(payload: &[u8]) -> Result<Vec<Key>, String> {
    let content: ClosedContent = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    if content.sagas.len() > CLOSED_MAX {
        return Err(format!("it names {} sagas; at most {CLOSED_MAX} are taken", content.sagas.len()));
    }
    content.sagas.iter().map(|key| Key::from_message(key).map_err(|problem| problem.to_string())).collect()
}
