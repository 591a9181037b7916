use std::fmt;

use crate::store::MessageId;

/// A malformed delivery: a part of the protocol is missing or of the wrong type. The receiver keeps it as a dead
/// letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong with it, in one sentence.
    pub problem: String,
    /// Its id, if it has one.
    pub id: Option<MessageId>,
    /// The headers, as far as they are text.
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
