//! A success that an owner without its lease left on the work row.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::engine::instance::{AttemptDetails, AttemptResult, WorkItem};
use crate::machine::Ending;
use crate::step::Emitted;
use crate::store::Store;

/// What an owner that lost its command leaves on the row: everything that belongs to a success. The store sees bytes.
///
/// The events are part of it: a step that is recorded as done emits its events, whichever process records it.
#[derive(Debug, Serialize, Deserialize)]
struct LateSuccess {
    /// The encoded output, which is JSON and so is text.
    #[serde(rename = "o")]
    output: String,
    /// The events, by name and payload.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    emitted: Vec<(String, String)>,
}

/// The success as it is noted on the row.
pub(crate) fn encode(findings: &AttemptDetails) -> Vec<u8> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let late = LateSuccess {
        output: findings.output.as_deref().map(text).unwrap_or_default(),
        emitted: findings.emitted.iter().map(|event| (event.name.clone().into_owned(), text(&event.payload))).collect(),
    };
    // Texts always encode.
    serde_json::to_vec(&late).unwrap_or_default()
}

/// The success that an older owner noted on the row, as if this command had ended with it.
pub(crate) fn attempted<S: Store>(command: &WorkItem<S>, noted: &[u8]) -> AttemptResult {
    AttemptResult {
        ending: Ending::Done,
        findings: AttemptDetails { attempts: command.attempt_number(), ..findings(noted) },
    }
}

/// What the success that was noted brings with it.
pub(crate) fn findings(noted: &[u8]) -> AttemptDetails {
    match serde_json::from_slice::<LateSuccess>(noted) {
        Ok(late) => {
            let event = |(name, payload): (String, String)| Emitted { name: Cow::Owned(name), payload: payload.into() };
            AttemptDetails {
                output: Some(late.output.into_bytes()),
                emitted: late.emitted.into_iter().map(event).collect(),
                ..AttemptDetails::default()
            }
        }
        // Only `encode` writes it. If it is damaged, decoding the output reports that.
        Err(_) => AttemptDetails { output: Some(noted.to_vec()), ..AttemptDetails::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_success_keeps_its_output_and_its_events() {
        let event = Emitted { name: "order-paid".into(), payload: br#"{"order":7}"#.to_vec() };
        let left = AttemptDetails {
            output: Some(b"\"receipt\"".to_vec()),
            emitted: vec![event.clone()],
            ..AttemptDetails::default()
        };
        let found = findings(&encode(&left));
        assert_eq!(found.output, left.output);
        assert_eq!(found.emitted, [event]);
    }
}
