use std::collections::BTreeSet;

/// What a receiver has on its present channel and has not settled.
///
/// The receiver's tags go on counting when the channel changes, so that a tag of an older channel is known as such and
/// is never taken for another message's.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    /// What is added to a tag of the present channel.
    base: u64,
    /// The highest tag so far, of any channel.
    last: u64,
    /// The tags of the present channel that are not settled.
    tags: BTreeSet<u64>,
}

/// What to tell the broker, in the channel's own tags.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// These come again, and are told first: an acknowledgement of several leaves them alone then.
    pub(crate) rejects: Vec<u64>,
    /// All up to this one are done.
    pub(crate) up_to: Option<u64>,
    /// These are done, each by itself.
    pub(crate) singles: Vec<u64>,
}

impl Unsettled {
    /// The tags of the next channel: what is unsettled on this one comes again there.
    pub(crate) fn next(&self) -> Self {
        Self { base: self.last, last: self.last, tags: BTreeSet::new() }
    }

    /// A message came; answers the receiver's tag of it.
    pub(crate) fn arrived(&mut self, channel_tag: u64) -> u64 {
        let tag = self.base + channel_tag;
        self.last = self.last.max(tag);
        self.tags.insert(tag);
        tag
    }

    /// Whether nothing is unsettled.
    pub(crate) fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// Takes the settled tags out, and says what to tell the broker. Tags of an older channel and unknown ones are left
    /// out.
    pub(crate) fn settle(&mut self, accepted: &[u64], rejected: &[u64]) -> Plan {
        let mut plan = Plan::default();
        for tag in rejected {
            if self.tags.remove(tag) {
                plan.rejects.push(tag - self.base);
            }
        }
        let accepted: BTreeSet<u64> = accepted.iter().copied().filter(|tag| self.tags.remove(tag)).collect();
        let open = self.tags.first().copied().unwrap_or(u64::MAX);
        plan.up_to = accepted.range(..open).next_back().map(|tag| tag - self.base);
        plan.singles = accepted.range(open..).map(|tag| tag - self.base).collect();
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(count: u64) -> Unsettled {
        let mut unsettled = Unsettled::default();
        for tag in 1..=count {
            unsettled.arrived(tag);
        }
        unsettled
    }

    fn plan(rejects: &[u64], up_to: Option<u64>, singles: &[u64]) -> Plan {
        Plan { rejects: rejects.to_vec(), up_to, singles: singles.to_vec() }
    }

    #[test]
    fn acknowledges_at_once_up_to_the_first_that_is_open() {
        assert_eq!(with(5).settle(&[1, 2, 3, 4, 5], &[]), plan(&[], Some(5), &[]));
        assert_eq!(with(5).settle(&[2, 1, 4], &[]), plan(&[], Some(2), &[4]));
        assert_eq!(with(5).settle(&[3, 5], &[]), plan(&[], None, &[3, 5]));
        assert_eq!(with(5).settle(&[1, 3], &[2]), plan(&[2], Some(3), &[]));
        assert_eq!(with(3).settle(&[], &[1, 2]), plan(&[1, 2], None, &[]));
    }

    #[test]
    fn what_closes_a_gap_acknowledges_what_is_behind_it_no_second_time() {
        let mut unsettled = with(4);
        assert_eq!(unsettled.settle(&[2, 3], &[]), plan(&[], None, &[2, 3]));
        assert_eq!(unsettled.settle(&[1], &[]), plan(&[], Some(1), &[]));
        assert_eq!(unsettled.settle(&[4, 3], &[2]), plan(&[], Some(4), &[]));
        assert!(unsettled.is_empty());
    }

    #[test]
    fn tags_of_an_older_channel_are_ignored() {
        let mut unsettled = with(3).next();
        assert_eq!(unsettled.arrived(1), 4);
        assert_eq!(unsettled.settle(&[1, 2], &[3]), plan(&[], None, &[]));
        assert_eq!(unsettled.settle(&[4], &[]), plan(&[], Some(1), &[]));
    }
}
