//! The headers of messages.

use uuid::Uuid;

use crate::store::MessageId;

/// The outcome of a step in a reply, and what the sender knows of a step in an undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Answer {
    /// It took effect; a reply's payload is its output.
    Done,
    /// A definite business failure: it had no effect.
    Rejected,
    /// Out of attempts: no effect.
    Failed,
    /// It may have taken effect.
    Unknown,
    /// It has a tombstone and never began: it had no effect.
    Cancelled,
    /// It was undone, or there was nothing to undo and the step has a tombstone.
    Undone,
    /// It needs an operator of its host, whose decision may still bring it to any end.
    Stuck,
    /// The message became a dead letter, so the step certainly did not run because of it.
    Refused,
}

impl Answer {
    const NAMES: [(Self, &'static str); 8] = [
        (Self::Done, "done"),
        (Self::Rejected, "rejected"),
        (Self::Failed, "failed"),
        (Self::Unknown, "unknown"),
        (Self::Cancelled, "cancelled"),
        (Self::Undone, "undone"),
        (Self::Stuck, "stuck"),
        (Self::Refused, "refused"),
    ];

    /// The answer as it is sent and shown.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(answer, _)| *answer == self).map_or("", |(_, name)| name)
    }

    /// The answer of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, name)| *name == text).map(|(answer, _)| *answer)
    }
}

/// The headers of a message. Each is a text under a name that is the same on every transport: see [`Headers::pairs`].
///
/// The texts are the sender's. The handler of the message checks whether they are a legal key or a known step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers {
    /// The key of the saga that caused the message.
    pub saga_key: Option<String>,
    /// The name of the step that it concerns.
    pub step: Option<String>,
    /// The service that it is addressed to.
    pub service: Option<String>,
    /// The service that waits for a reply.
    pub reply_to: Option<String>,
    /// For a reply or a report: the id of the message that it answers.
    pub correlation: Option<MessageId>,
    /// For a reply: the outcome of the step. For an undo: what the sender knows of it, done or unknown.
    pub answer: Option<Answer>,
    /// The W3C trace context, passed on unchanged.
    pub traceparent: Option<String>,
    /// For a command or an undo: the semantic locks that its saga has. A JSON object of their names, each with the list of its
    /// entities and their fencing tokens; at most [`LOCKS_BYTES_MAX`](Self::LOCKS_BYTES_MAX). An empty object stands for longer ones.
    pub locks: Option<String>,
    /// The id of the key that the message is signed with.
    pub key_id: Option<String>,
    /// The signature, in hexadecimal digits.
    pub signature: Option<String>,
}

pub(in crate::store) const SAGA_KEY: &str = "saga-cause";
const STEP: &str = "saga-step";
const SERVICE: &str = "saga-service";
const REPLY_TO: &str = "saga-reply-to";
const CORRELATION: &str = "saga-correlation";
const ANSWER: &str = "saga-answer";
const TRACEPARENT: &str = "traceparent";
const LOCKS: &str = "saga-locks";
const KEY_ID: &str = "saga-key-id";
const SIGNATURE: &str = "saga-signature";

impl Headers {
    /// The headers of a reply from one service to another.
    pub(crate) fn of_reply(saga_key: String, step: String, from: &str, to: &str, correlation: MessageId) -> Self {
        Self {
            saga_key: Some(saga_key),
            step: Some(step),
            service: Some(to.to_owned()),
            reply_to: Some(from.to_owned()),
            correlation: Some(correlation),
            ..Self::default()
        }
    }

    /// The longest text of the header `saga-locks`, in bytes. A command of a saga with longer ones carries an empty
    /// object.
    pub const LOCKS_BYTES_MAX: usize = 16 << 10;

    /// The longest text of the header of this name, in bytes, where a transport has this limit for each of the others.
    pub fn bytes_max(name: &str, of_others: usize) -> usize {
        if name == LOCKS { of_others.max(Self::LOCKS_BYTES_MAX) } else { of_others }
    }

    /// The names under which headers travel.
    pub const NAMES: [&'static str; 10] =
        [SAGA_KEY, STEP, SERVICE, REPLY_TO, CORRELATION, ANSWER, TRACEPARENT, LOCKS, KEY_ID, SIGNATURE];

    /// The headers that are set, by their [`NAMES`](Self::NAMES): `saga-cause`, `saga-step`, `saga-service`,
    /// `saga-reply-to`, `saga-correlation`, `saga-answer`, `traceparent`, `saga-locks`, `saga-key-id` and `saga-signature`.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let texts = [
            (SAGA_KEY, self.saga_key.clone()),
            (STEP, self.step.clone()),
            (SERVICE, self.service.clone()),
            (REPLY_TO, self.reply_to.clone()),
            (CORRELATION, self.correlation.map(|id| id.to_string())),
            (ANSWER, self.answer.map(|answer| answer.as_str().to_owned())),
            (TRACEPARENT, self.traceparent.clone()),
            (LOCKS, self.locks.clone()),
            (KEY_ID, self.key_id.clone()),
            (SIGNATURE, self.signature.clone()),
        ];
        texts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }

    /// Reads headers from pairs. Unknown names are ignored.
    ///
    /// # Errors
    /// Names the header whose text is invalid.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut headers = Self::default();
        for (name, text) in pairs {
            let unreadable = || format!("the header `{name}` is {text:?}");
            let whole = Some(text.to_owned());
            match name {
                SAGA_KEY => headers.saga_key = whole,
                STEP => headers.step = whole,
                SERVICE => headers.service = whole,
                REPLY_TO => headers.reply_to = whole,
                TRACEPARENT => headers.traceparent = whole,
                LOCKS => headers.locks = whole,
                KEY_ID => headers.key_id = whole,
                SIGNATURE => headers.signature = whole,
                CORRELATION => {
                    let id = Uuid::parse_str(text).map_err(|_| format!("{}, which is no message id", unreadable()))?;
                    headers.correlation = Some(MessageId(id));
                }
                ANSWER => {
                    let answer = Answer::parse(text).ok_or_else(|| format!("{}, which is no answer", unreadable()))?;
                    headers.answer = Some(answer);
                }
                _ => {}
            }
        }
        Ok(headers)
    }

    /// The headers as one text, for a column: a JSON object of the [`pairs`](Self::pairs). Empty if there are none.
    pub fn encode(&self) -> String {
        let pairs = self.pairs();
        if pairs.is_empty() {
            return String::new();
        }
        let object: serde_json::Map<String, serde_json::Value> =
            pairs.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
        serde_json::Value::Object(object).to_string()
    }

    /// Decodes what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the text is not one that it wrote.
    pub fn decode(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(text).map_err(|error| format!("the headers are not readable: {error}"))?;
        Self::read(object.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))))
    }
}

#[cfg(test)]
pub(in crate::store) mod tests {
    use super::*;

    pub(in crate::store) fn headers() -> Headers {
        Headers {
            saga_key: Some("8f14e45f".into()),
            step: Some("charge-card".into()),
            service: Some("orders".into()),
            reply_to: Some("payments".into()),
            correlation: Some(MessageId(Uuid::from_u128(6))),
            answer: Some(Answer::Done),
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            locks: Some(r#"{"credit":[{"kind":"account","id":"7","token":41}]}"#.into()),
            key_id: Some("payments-1".into()),
            signature: Some("00ff".into()),
        }
    }

    #[test]
    fn headers_travel_under_their_names() {
        let headers = headers();
        let pairs = headers.pairs();
        let read = Headers::read(pairs.iter().map(|(name, text)| (*name, text.as_str())));
        assert_eq!(read.as_ref(), Ok(&headers));
        let wrong = Headers::read([("saga-answer", "perhaps")]).unwrap_err();
        assert_eq!(wrong, "the header `saga-answer` is \"perhaps\", which is no answer");
    }
}
