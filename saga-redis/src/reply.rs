//! What the script of `acquire` answers.

use std::time::Duration;

use crate::token::join;

/// The answer for one entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The holder has it, with this token.
    Granted(u64),
    /// So many holders are before it, and the lease of the one that has it lasts so long.
    Waits(u64, Option<Duration>),
    /// The slot has no epoch of this server. The last one that it had, or 0.
    Stale(u64),
    /// The slot has an epoch that the client has not compared with the store.
    Unchecked(u64),
}

impl Reply {
    /// Reads the words of an answer. `None` if it is none of this version.
    pub(crate) fn read(words: &[String]) -> Option<Self> {
        let number = |index: usize| words.get(index)?.parse::<u64>().ok();
        match words.first()?.as_str() {
            "granted" => Some(Self::Granted(join(number(1)?, number(2)?))),
            "waits" => Some(Self::Waits(number(1)?, number(2).map(Duration::from_millis))),
            "stale" => Some(Self::Stale(number(1)?)),
            "unchecked" => Some(Self::Unchecked(number(1)?)),
            _ => None,
        }
    }

    pub(crate) fn is_granted(words: &[String]) -> bool {
        words.first().is_some_and(|word| word == "granted")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let read = |words: &[&str]| Reply::read(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(read(&["granted", "3", "7"]), Some(Reply::Granted(3 << 40 | 7)));
        assert_eq!(read(&["waits", "2", "-1"]), Some(Reply::Waits(2, None)));
        assert_eq!(read(&["waits", "2", "30"]), Some(Reply::Waits(2, Some(Duration::from_millis(30)))));
        assert_eq!(read(&["stale", "0"]), Some(Reply::Stale(0)));
        assert_eq!(read(&["unchecked", "9"]), Some(Reply::Unchecked(9)));
        assert_eq!((read(&["granted", "3"]), read(&[])), (None, None));
    }
}
