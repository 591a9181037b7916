//! How a handler ended: as a value for the machine, and as a log event.

use std::time::Duration;

use crate::engine::instance::WorkItem;
use crate::log;
use crate::machine::Ending;
use crate::saga::{LONGEST, Unfinished};
use crate::step::{StepErrorKind, limited};
use crate::store::{Failing, Store};
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
        StepErrorKind::Transient => {
            let delay_min = error.delay_min().min(LONGEST);
            Ending::Erred { message: limited(error.to_string()), not_sent: false, delay_min }
        }
        StepErrorKind::NotSent => {
            Ending::Erred { message: limited(error.to_string()), not_sent: true, delay_min: Duration::ZERO }
        }
        StepErrorKind::Stuck => Ending::Stuck { message: limited(error.to_string()) },
        StepErrorKind::Unreadable => Ending::Undecodable { message: limited(error.to_string()) },
        StepErrorKind::Rejected => match error.into_rejection() {
            Ok(reason) => Ending::Rejected(reason),
            Err(error) => erred(error.to_string()),
        },
    }
}

pub(crate) fn erred(message: impl Into<String>) -> Ending {
    Ending::Erred { message: limited(message.into()), not_sent: false, delay_min: Duration::ZERO }
}

/// Whether a failed attempt is worth a warning: the tenth, later every sixtieth, which is about every half hour with the default
/// policy, and before the tenth each one after ten minutes.
fn is_reported_as_failing(attempt: u32, retrying_for: Duration) -> bool {
    let Failing { attempts, retrying_for: limit } = Failing::DEFAULT;
    match attempt {
        _ if attempt < attempts => retrying_for >= limit,
        _ => attempt == attempts || attempt.is_multiple_of(60),
    }
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
            if is_reported_as_failing(attempt, command.retrying_for) {
                let retrying_for_s = command.retrying_for.as_secs();
                log::warn!(tenant, %saga, %step, attempt, retrying_for_s, error = message, "step is failing");
            } else {
                log::info!(tenant, %saga, %step, attempt, error = message, "step attempt failed");
            }
        }
        Ending::Vanished => log::warn!(tenant, %saga, %step, attempt, "step lost its process on every attempt"),
        Ending::Unstorable { message }
        | Ending::Stuck { message }
        | Ending::Undecodable { message }
        | Ending::Broke { message } => {
            log::warn!(tenant, %saga, %step, attempt, error = message, "step cannot be retried");
        }
    }
}
