use std::fmt;

use crate::store::MessageId;

/// A delivery that is no message of this protocol: something of it is missing or of the wrong kind. Whoever receives it
/// keeps it as a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong with it, in one sentence.
    pub problem: String,
    /// Its id, if it has one.
    pub id: Option<MessageId>,
    /// What stands beside its content, as far as it is text.
    pub headers: Vec<(String, String)>,
    /// Its content.
    pub payload: Vec<u8>,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Unreadable {}
