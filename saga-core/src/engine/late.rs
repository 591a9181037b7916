use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::attempt::AttemptResult;
use super::command::WorkItem;
use super::in_flight::SagaInstance;
use super::prepared::AttemptDetails;
use super::shared::EngineContext;
use crate::machine::{Ending, StepPhase};
use crate::step::Emitted;
use crate::store::{StepRecord, Store};

/// What an owner that lost its command leaves on the row: all that a success brings with it. A store sees bytes.
///
/// The events are part of it: a step that is recorded as done tells what it has to tell, whoever records it.
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
pub(super) fn encode(findings: &AttemptDetails) -> Vec<u8> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let late = LateSuccess {
        output: findings.output.as_deref().map(text).unwrap_or_default(),
        emitted: findings.emitted.iter().map(|event| (event.name.clone().into_owned(), text(&event.payload))).collect(),
    };
    // Texts always encode.
    serde_json::to_vec(&late).unwrap_or_default()
}

/// The success that an older owner noted on the row, as if this command had ended with it.
pub(super) fn attempted<S: Store>(command: &WorkItem<S>, noted: &[u8]) -> AttemptResult {
    AttemptResult {
        ending: Ending::Done,
        findings: AttemptDetails { attempts: command.attempt_number(), ..findings(noted) },
    }
}

/// What the success that was noted brings with it.
pub(super) fn findings(noted: &[u8]) -> AttemptDetails {
    match serde_json::from_slice::<LateSuccess>(noted) {
        Ok(late) => {
            let event = |(name, payload): (String, String)| Emitted { name: Cow::Owned(name), payload: payload.into() };
            AttemptDetails {
                output: Some(late.output.into_bytes()),
                emitted: late.emitted.into_iter().map(event).collect(),
                ..AttemptDetails::default()
            }
        }
        // Nobody but `encode` writes it. Should it be damaged, whoever decodes the output finds that out.
        Err(_) => AttemptDetails { output: Some(noted.to_vec()), ..AttemptDetails::default() },
    }
}

impl<S: Store> EngineContext<S> {
    /// Whether a call that was not answered ended too late for what was decided without it. An undo that does not know
    /// whether there is anything to undo waits for the end of every call that keeps its time limit; one that began before
    /// the end of this call, which did not keep it, may have missed its effect.
    pub(super) async fn is_news(
        &self,
        saga: &SagaInstance<S>,
        step: usize,
        records: &[StepRecord],
        findings: &AttemptDetails,
        ended_at: Duration,
    ) -> Result<bool, String> {
        let stands = &saga.state.steps[step];
        match stands.phase {
            StepPhase::Undoing => Ok(findings.took > 2 * saga.step(step).options.timeout),
            StepPhase::Undone => {
                let undo = saga.doing(step).undone(stands.undo_round);
                let Some(record) = records.iter().find(|record| record.step == undo) else { return Ok(false) };
                let now = self.store.now().await.map_err(|error| error.to_string())?;
                let since = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
                let ended = now.0.saturating_sub(since(self.env.now().saturating_sub(ended_at)));
                Ok(ended > record.recorded_at.0.saturating_sub(since(record.took)))
            }
            _ => Ok(true),
        }
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
