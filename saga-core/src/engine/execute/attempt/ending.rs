//! How a handler ended: as a value for the machine, and as a log event.

use crate::engine::instance::WorkItem;
use crate::log;
use crate::machine::Ending;
use crate::saga::Unfinished;
use crate::step::{StepErrorKind, limited};
use crate::store::Store;
use crate::unwind::caught;

/// The ending of an attempt without an output. The error may be a user's type whose `Display` or `Drop` panics: then the outcome
/// of the attempt is unknown.
pub(crate) fn ending_of(unfinished: Unfinished) -> Ending {
    let ending = caught(|| ending_in_words(unfinished));
    ending.unwrap_or_else(|panic| erred(format!("its error panicked: {panic}")))
}

fn ending_in_words(unfinished: Unfinished) -> Ending {
    let error = match unfinished {
        Unfinished::Unstorable(message) => return Ending::Unstorable { message },
        Unfinished::NotDone => return Ending::NotDone,
        Unfinished::Failed(error) => error,
    };
    match error.kind() {
        StepErrorKind::Transient => erred(error.to_string()),
        StepErrorKind::NotSent => Ending::Erred { message: limited(error.to_string()), not_sent: true },
        StepErrorKind::Stuck => Ending::Undecodable { message: limited(error.to_string()) },
        StepErrorKind::Rejected => match error.into_rejection() {
            Ok(reason) => Ending::Rejected(reason),
            Err(error) => erred(error.to_string()),
        },
    }
}

pub(crate) fn erred(message: impl Into<String>) -> Ending {
    Ending::Erred { message: limited(message.into()), not_sent: false }
}

pub(crate) fn trace<S: Store>(command: &WorkItem<S>, ending: &Ending, attempt: u32) {
    let (tenant, saga) = (command.saga.tenant.as_str(), &command.saga.key);
    let step = match ending {
        // Without a listener, the step id is not made.
        Ending::Done if !log::is_verbose() => return,
        _ => command.step_id(),
    };
    match ending {
        Ending::Done => log::debug!(tenant, %saga, %step, attempt, "step done"),
        Ending::NotDone => log::info!(tenant, %saga, %step, attempt, "step resolved as not done"),
        Ending::Rejected(reason) | Ending::Refused(reason) => {
            log::info!(tenant, %saga, %step, attempt, %reason, "step rejected");
        }
        Ending::Erred { message, .. } => {
            log::info!(tenant, %saga, %step, attempt, error = message, "step attempt failed");
        }
        Ending::Vanished => log::warn!(tenant, %saga, %step, attempt, "step lost its process on every attempt"),
        Ending::Unstorable { message } | Ending::Undecodable { message } | Ending::Broke { message } => {
            log::warn!(tenant, %saga, %step, attempt, error = message, "step cannot be retried");
        }
    }
}
