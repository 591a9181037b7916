//! The errors of the public API.

use super::UnreadableValues;
use crate::key::InvalidName;
use crate::store::{MessageId, StoreError};

/// Why a runtime did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The settings, the definitions and the states do not fit together; each sentence says what to change.
    #[error("the runtime cannot start: {}", .0.join("; "))]
    Invalid(Vec<String>),
    /// The types of a definition changed under its version: values of unfinished sagas cannot be read. Nothing ran.
    #[error(
        "the runtime cannot start, since sagas would get stuck: {}; give the changed definition a new version, or types that also \
         read the stored form, or start anyway with `.settings(|settings| settings.start_with_unreadable_sagas = true)`",
        joined(.0)
    )]
    Unreadable(Vec<UnreadableValues>),
    /// It was started outside a tokio runtime.
    #[error("the runtime must be started inside a tokio runtime: {0}")]
    NoTokio(#[from] tokio::runtime::TryCurrentError),
    /// The store failed.
    #[error("the runtime cannot start: {0}")]
    Store(#[from] StoreError),
}

fn joined(unreadable: &[UnreadableValues]) -> String {
    unreadable.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Why a saga was not started. Nothing was changed, unless the store's error says that it may have been.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The key is not a legal one.
    #[error(transparent)]
    Key(#[from] InvalidName),
    /// The definition was not given to the runtime.
    #[error("the saga `{0}` is not registered; give it to the runtime with `.saga(&..)`")]
    NotRegistered(String),
    /// The key belongs to a saga with another payload.
    #[error(
        "the key `{key}` belongs to a saga that was started with another payload: `{path}` differs; repeat the first payload, or \
         use another key"
    )]
    PayloadMismatch {
        /// The key.
        key: String,
        /// The first path at which the payloads differ.
        path: String,
    },
    /// The key belongs to a saga of another definition.
    #[error(
        "the key `{key}` belongs to a saga `{saga}`; keys are unique per tenant, whatever the saga, so use another key"
    )]
    OtherSaga {
        /// The key.
        key: String,
        /// The other saga's name.
        saga: String,
    },
    /// The input, or what a mapping made of it for the first step, cannot be encoded.
    #[error("the input cannot be stored: {0}")]
    Input(String),
    /// The input is longer than the setting allows.
    #[error(
        "the input has {bytes} bytes; `payload_bytes_max` allows {max}, so store it elsewhere and pass a reference"
    )]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// It was called inside a transactional step, where it would wait for the connection that the step holds.
    #[error("inside a transactional step start it with `.in_tx(conn)` and the step's connection, or use `ctx.emit`")]
    InsideStep,
    /// The runtime shuts down.
    #[error("the runtime is shutting down, and starts no saga; start it again with the same key when a runtime runs")]
    ShuttingDown,
    /// The store failed. If the error's class is `Unknown`, the saga may exist; the same call may be repeated either way.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a question about sagas, or an operator's action, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The key is not a legal one.
    #[error(transparent)]
    Key(#[from] InvalidName),
    /// There is no saga of that key.
    #[error("there is no saga with the key `{0}`")]
    NoSaga(String),
    /// The key belongs to a saga of another definition.
    #[error("the key `{key}` belongs to a saga `{saga}`, not to a saga `{expected}`; attach with its own definition")]
    OtherSaga {
        /// The key.
        key: String,
        /// The name of the saga's definition.
        saga: String,
        /// The name of the definition that was given.
        expected: String,
    },
    /// The saga's definition is not known to this process.
    #[error(
        "the saga `{key}` was started with `{definition}`, which is not registered here; register it with `.saga(&..)`"
    )]
    UnknownDefinition {
        /// The saga's key.
        key: String,
        /// The definition's name and version.
        definition: String,
    },
    /// What is stored of the saga cannot be read.
    #[error("the saga `{key}` cannot be read: {problem}")]
    Unreadable {
        /// The saga's key.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// Only a tombstone of the saga is kept.
    #[error(
        "the saga `{key}` was {status} and is only a tombstone now: its payloads and step records are deleted, so nothing can be \
         done with it"
    )]
    Tombstone {
        /// The saga's key.
        key: String,
        /// How it ended.
        status: crate::store::Status,
    },
    /// The saga has moved since the operator read it.
    #[error("the saga `{key}` has moved since: it is {status} at revision {version} now; read it again before you act")]
    Moved {
        /// The saga's key.
        key: String,
        /// Its status now.
        status: crate::store::Status,
        /// Its version now.
        version: u64,
    },
    /// The retention of a definition cannot be applied.
    #[error("the retention of `{saga}` cannot be applied: {problem}")]
    Retention {
        /// The definition.
        saga: String,
        /// Why not.
        problem: &'static str,
    },
    /// A step of the saga is under way in some process.
    #[error(
        "a step of the saga `{key}` is under way; try again when it has ended, or when the process that runs it has"
    )]
    Busy {
        /// The saga's key.
        key: String,
    },
    /// The action does not fit the saga.
    #[error("the saga `{key}` was not changed: {problem}")]
    Refused {
        /// The saga's key.
        key: String,
        /// Why not.
        problem: String,
    },
    /// A signal has another form than the waiting step takes. Nothing was changed, so the right signal may still arrive.
    #[error(
        "the saga `{key}` does not take this signal, since its step `{step}` waits for one of another form: {problem}"
    )]
    SignalForm {
        /// The saga's key.
        key: String,
        /// The step that waits.
        step: String,
        /// The type that it waits for, and what is wrong with the signal.
        problem: String,
    },
    /// The plan cannot be executed like this.
    #[error("the plan was not executed: {0}")]
    Plan(String),
    /// It was called inside a transactional step, where it would wait for the connection that the step holds.
    #[error(
        "a transactional step must not ask the runtime: it would wait for the connection that the step holds; read with that \
         connection, or ask in an external step"
    )]
    InsideStep,
    /// The action does not fit the dead letter.
    #[error("the dead letter {letter} was not changed: {problem}")]
    DeadLetter {
        /// The letter's id.
        letter: i64,
        /// Why not.
        problem: String,
    },
    /// The action does not fit the message that waits to be sent.
    #[error("the message {message} in the outbox was not changed: {problem}")]
    Parked {
        /// The message.
        message: MessageId,
        /// Why not.
        problem: String,
    },
    /// A `SagaAdmin` on a bare store was used outside a tokio runtime.
    #[error("sagas are worked on inside a tokio runtime: {0}")]
    NoTokio(#[from] tokio::runtime::TryCurrentError),
    /// The store has lost a saga that it had committed.
    #[error(
        "the saga `{key}` is no longer in the store, which lost what it had committed (a failover to a replica that lagged \
         behind, or a restored backup); start it again with the same key"
    )]
    Lost {
        /// The saga's key.
        key: String,
    },
    /// The runtime ended before the saga did.
    #[error("the runtime ended before the saga did; the saga goes on when a runtime runs again")]
    Ended,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests {
    use super::{RuntimeError, StartError};
    use crate::store::{MessageId, Status};

    /// Each text says what happened, to what, why, and what to do.
    #[test]
    fn errors_say_what_to_do() {
        let (key, problem) = (|| "k".to_owned(), || "give a reason".to_owned());
        let start = |error: StartError| error.to_string();
        let runtime = |error: RuntimeError| error.to_string();
        let cases = [
            (
                start(StartError::PayloadMismatch { key: key(), path: "a.b".to_owned() }),
                "the key `k` belongs to a saga that was started with another payload: `a.b` differs; repeat the first \
                 payload, or use another key",
            ),
            (
                start(StartError::OtherSaga { key: key(), saga: "order".to_owned() }),
                "the key `k` belongs to a saga `order`; keys are unique per tenant, whatever the saga, so use another key",
            ),
            (
                start(StartError::ShuttingDown),
                "the runtime is shutting down, and starts no saga; start it again with the same key when a runtime runs",
            ),
            (
                runtime(RuntimeError::UnknownDefinition { key: key(), definition: "order version 2".to_owned() }),
                "the saga `k` was started with `order version 2`, which is not registered here; register it with \
                 `.saga(&..)`",
            ),
            (
                runtime(RuntimeError::Moved { key: key(), status: Status::Stuck, version: 7 }),
                "the saga `k` has moved since: it is stuck at revision 7 now; read it again before you act",
            ),
            (
                runtime(RuntimeError::Refused { key: key(), problem: problem() }),
                "the saga `k` was not changed: give a reason",
            ),
            (
                runtime(RuntimeError::DeadLetter { letter: 3, problem: problem() }),
                "the dead letter 3 was not changed: give a reason",
            ),
            (
                runtime(RuntimeError::Parked { message: MessageId(uuid::Uuid::nil()), problem: problem() }),
                "the message 00000000-0000-0000-0000-000000000000 in the outbox was not changed: give a reason",
            ),
            (runtime(RuntimeError::Plan("it is empty".to_owned())), "the plan was not executed: it is empty"),
            (
                runtime(RuntimeError::InsideStep),
                "a transactional step must not ask the runtime: it would wait for the connection that the step holds; read \
                 with that connection, or ask in an external step",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(text, expected);
        }
    }
}
