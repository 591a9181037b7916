//! Messages that tell a host which sagas are closed: their records are deleted, so nothing more will be asked for them. And
//! messages with which a host asks for this.
//!
//! Both have one kind. A version that does not know the question takes it for a message that closes no saga.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::messages::Messages;
use crate::engine::context::random_uuid;
use crate::key::{Key, Tenant};
use crate::store::{Headers, MessageId, MessageKind, NewMessage, Timestamp, lane_of};

/// How many sagas one message names at most.
pub(crate) const CLOSED_MAX: usize = 500;

/// The content.
#[derive(Default, Serialize, Deserialize)]
struct ClosedContent {
    /// The keys of sagas that are closed.
    sagas: Vec<String>,
    /// The sagas that a host asks about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<AskedContent>,
    /// In an answer, when the question was committed, by the clock of the host: in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_at: Option<i64>,
}

/// A saga that a host asks about.
#[derive(Serialize, Deserialize)]
struct AskedContent {
    key: String,
    /// How long ago a step of it ended there, in whole seconds.
    ended_ago_s: u64,
}

/// What such a message says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// These sagas are closed. An answer says when the question was committed, by the clock of the host.
    Sagas { keys: Vec<Key>, asked_at: Option<Timestamp> },
    /// Which of these sagas are closed?
    Asked(Vec<AskedSaga>),
}

/// A saga that a host asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskedSaga {
    pub(crate) key: Key,
    /// How long ago the last of its steps ended there.
    pub(crate) ended_ago: Duration,
}

impl Messages {
    /// Tells a service that did steps of these sagas that they are closed.
    pub(crate) fn closed_message(&self, tenant: &Tenant, host: &str, sagas: &[&Key]) -> NewMessage {
        let sagas = sagas.iter().map(ToString::to_string).collect();
        let content = ClosedContent { sagas, ..ClosedContent::default() };
        self.message_of(&content, tenant, self.settings.service.as_deref(), host)
    }

    /// The same as an answer to a question that was committed at that time, by the clock of the host. The question was received
    /// for the service `own`.
    pub(crate) fn closed_answer(
        &self,
        tenant: &Tenant,
        own: &str,
        host: &str,
        sagas: &[Key],
        at: Timestamp,
    ) -> NewMessage {
        let sagas = sagas.iter().map(ToString::to_string).collect();
        let content = ClosedContent { sagas, asked_at: Some(at.0), ..ClosedContent::default() };
        self.message_of(&content, tenant, Some(own), host)
    }

    /// Asks a service which of these sagas are closed. The service `own` did steps of them. All its questions to that service have one
    /// ordering key, so that the outbox knows for how long one waits.
    pub(crate) fn closed_question(&self, tenant: &Tenant, own: &str, asker: &str, sagas: &[AskedSaga]) -> NewMessage {
        let content_of =
            |saga: &AskedSaga| AskedContent { key: saga.key.to_string(), ended_ago_s: saga.ended_ago.as_secs() };
        let content = ClosedContent { asked: sagas.iter().map(content_of).collect(), ..ClosedContent::default() };
        let message = self.message_of(&content, tenant, Some(own), asker);
        let key = format!("closed:{own}");
        NewMessage { lane: lane_of(tenant, &message.aggregate_type, &key), aggregate_id: key, ..message }
    }

    fn message_of(&self, content: &ClosedContent, tenant: &Tenant, from: Option<&str>, to: &str) -> NewMessage {
        let id = MessageId(random_uuid(&*self.env));
        NewMessage {
            event_type: "closed".to_owned(),
            // Texts and numbers always encode.
            payload: serde_json::to_vec(content).unwrap_or_default(),
            headers: Headers { service: Some(to.to_owned()), reply_to: from.map(str::to_owned), ..Headers::default() },
            ..NewMessage::to_service(MessageKind::Closed, id, tenant, to)
        }
    }
}

/// What the content of such a message says.
///
/// # Errors
/// Says what is wrong with the content.
pub(crate) fn closed_content(payload: &[u8]) -> Result<Closed, String> {
    let content: ClosedContent = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    let count = content.sagas.len() + content.asked.len();
    if count > CLOSED_MAX {
        return Err(format!("it names {count} sagas; at most {CLOSED_MAX} are taken"));
    }
    let key = |text: &str| Key::from_message(text).map_err(|problem| problem.to_string());
    if content.asked.is_empty() {
        let keys = content.sagas.iter().map(|text| key(text)).collect::<Result<_, _>>()?;
        return Ok(Closed::Sagas { keys, asked_at: content.asked_at.map(Timestamp) });
    }
    let asked = content
        .asked
        .iter()
        .map(|asked| Ok(AskedSaga { key: key(&asked.key)?, ended_ago: Duration::from_secs(asked.ended_ago_s) }));
    asked.collect::<Result<_, String>>().map(Closed::Asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_closes_sagas_or_asks_about_them() {
        let key = |text| Key::from_message(text).unwrap();
        let closed = closed_content(br#"{"sagas":["o-1"]}"#).unwrap();
        assert_eq!(closed, Closed::Sagas { keys: vec![key("o-1")], asked_at: None });
        let answer = closed_content(br#"{"sagas":["o-1"],"asked_at":7}"#).unwrap();
        assert_eq!(answer, Closed::Sagas { keys: vec![key("o-1")], asked_at: Some(Timestamp(7)) });
        let asked = closed_content(br#"{"sagas":[],"asked":[{"key":"o-1","ended_ago_s":9}]}"#).unwrap();
        assert_eq!(asked, Closed::Asked(vec![AskedSaga { key: key("o-1"), ended_ago: Duration::from_secs(9) }]));
    }

    /// G8: however many sagas it names, and whatever it is.
    #[test]
    fn g8_a_message_that_says_something_else_is_refused() {
        let many = |count| {
            let asked: Vec<_> = (0..count).map(|_| AskedContent { key: "o-1".into(), ended_ago_s: 1 }).collect();
            serde_json::to_vec(&ClosedContent { asked, ..ClosedContent::default() }).unwrap()
        };
        assert!(closed_content(&many(CLOSED_MAX)).is_ok());
        assert_eq!(closed_content(&many(CLOSED_MAX + 1)).unwrap_err(), "it names 501 sagas; at most 500 are taken");
        for text in ["", "[]", "{}", r#"{"sagas":[""]}"#, r#"{"sagas":[],"asked":[{"key":"o-1","ended_ago_s":-1}]}"#] {
            assert!(closed_content(text.as_bytes()).is_err(), "{text}");
        }
    }
}
