//! Which messages of a call go into one request.

use std::collections::{BTreeMap, VecDeque};

use crate::wire::{MESSAGE_BYTES_MAX, Outgoing};

/// How many messages a request has at most: a limit of SQS and SNS.
pub(crate) const MESSAGES_MAX: usize = 10;
/// How many bytes the messages of a request have at most: the same as one of them.
const REQUEST_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// The messages for one queue or topic that are not sent yet, by their groups. A message is identified by its place in the call.
#[derive(Debug, Default)]
pub(crate) struct Pending<'a> {
    groups: BTreeMap<&'a str, VecDeque<(usize, usize)>>,
}

impl<'a> Pending<'a> {
    pub(crate) fn add(&mut self, place: usize, message: &'a Outgoing) {
        self.groups.entry(&message.group).or_default().push_back((place, message.bytes()));
    }

    /// The next requests, which may be sent side by side: they have at most one message of each group, so that one that is not
    /// taken is not overtaken by the next of its group.
    pub(crate) fn next_requests(&mut self) -> Vec<Vec<usize>> {
        let mut first: Vec<(usize, usize)> = self.groups.values_mut().filter_map(VecDeque::pop_front).collect();
        self.groups.retain(|_, rest| !rest.is_empty());
        first.sort_unstable();
        let (mut requests, mut bytes) = (Vec::<Vec<usize>>::new(), 0);
        for (place, of_message) in first {
            bytes += of_message;
            match requests.last_mut() {
                Some(request) if request.len() < MESSAGES_MAX && bytes <= REQUEST_BYTES_MAX => request.push(place),
                _ => {
                    requests.push(vec![place]);
                    bytes = of_message;
                }
            }
        }
        requests
    }

    /// Takes out what is behind a message that was not sent.
    pub(crate) fn give_up(&mut self, group: &str) -> Vec<usize> {
        let rest = self.groups.remove(group).unwrap_or_default();
        rest.into_iter().map(|(place, _)| place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Encoding;
    use crate::wire::To;

    fn message(group: &str, bytes: usize) -> Outgoing {
        let mut message = Outgoing {
            to: To::Topic("t".into()),
            is_addressed: false,
            group: group.into(),
            deduplication: String::new(),
            head: String::new(),
            encoding: Encoding::Text,
            body: String::new(),
        };
        message.body = "x".repeat(bytes - message.bytes());
        assert_eq!(message.bytes(), bytes);
        message
    }

    fn all_requests(messages: &[Outgoing]) -> Vec<Vec<Vec<usize>>> {
        let mut pending = Pending::default();
        for (place, message) in messages.iter().enumerate() {
            pending.add(place, message);
        }
        std::iter::from_fn(|| Some(pending.next_requests()).filter(|requests| !requests.is_empty())).collect()
    }

    /// T-PUB-3: where one of two in a request fails, the other would overtake it.
    #[test]
    fn no_group_is_twice_in_what_is_sent_together() {
        let messages = ["a", "a", "b", "a", "c", "b"].map(|group| message(group, 100));
        assert_eq!(all_requests(&messages), [vec![vec![0, 2, 4]], vec![vec![1, 5]], vec![vec![3]]]);
    }

    #[test]
    fn a_request_has_ten_messages_at_most() {
        let messages: Vec<Outgoing> = (0..21).map(|group| message(&group.to_string(), 100)).collect();
        let sizes: Vec<usize> = all_requests(&messages).concat().iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 10, 1]);
    }

    #[test]
    fn a_request_is_no_longer_than_its_limit() {
        let half = REQUEST_BYTES_MAX / 2;
        let check = |bytes: &[usize], expected: &[usize]| {
            let messages: Vec<Outgoing> =
                bytes.iter().enumerate().map(|(group, bytes)| message(&group.to_string(), *bytes)).collect();
            let sizes: Vec<usize> = all_requests(&messages).concat().iter().map(Vec::len).collect();
            assert_eq!(sizes, expected, "{bytes:?}");
        };
        check(&[half, half], &[2]);
        check(&[half, half + 1], &[1, 1]);
        check(&[REQUEST_BYTES_MAX, 100, REQUEST_BYTES_MAX], &[1, 1, 1]);
        check(&[half, half, half, half], &[2, 2]);
    }

    #[test]
    fn what_is_behind_a_failed_message_is_given_up() {
        let messages = ["a", "a", "b", "a"].map(|group| message(group, 100));
        let mut pending = Pending::default();
        for (place, message) in messages.iter().enumerate() {
            pending.add(place, message);
        }
        assert_eq!(pending.next_requests(), [vec![0, 2]]);
        assert_eq!(pending.give_up("a"), [1, 3]);
        assert_eq!((pending.give_up("b"), pending.next_requests().len()), (vec![], 0));
    }
}
