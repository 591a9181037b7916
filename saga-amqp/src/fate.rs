//! What became of a message.

use lapin::Error;

/// The id and the routing key.
pub(crate) type Identity = (String, String);

/// What became of one message.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// The broker has it.
    Confirmed,
    /// The broker has it, and no queue takes it.
    Returned,
    /// The broker says that it could not take it.
    Refused,
    /// The channel or the connection broke before an answer came.
    Broken(Error),
    /// The broker closed the channel because of another message before an answer came.
    Unanswered,
    /// No answer came in time. It may come later: the channel is kept.
    Late,
    /// No answer came in time, and the broker does not answer anything else on this connection.
    Silent,
    /// It was not sent: something before it broke.
    NotSent,
}
