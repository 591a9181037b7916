use std::collections::BTreeMap;

use saga_core::transport::{TransportError, TransportErrorKind};

/// By how many partitions the keys of each topic are spread that is sent to.
#[derive(Debug, Default)]
pub(crate) struct Spread(BTreeMap<String, Known>);

#[derive(Debug, Clone, Copy)]
struct Known {
    /// By how many partitions keys are spread.
    partitions: i32,
    /// How many there are.
    found: i32,
}

/// What a look at a topic found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// What was known.
    Same,
    /// It had so many partitions, and nothing is sent to it from now on.
    Changed(i32),
}

impl Spread {
    /// By how many partitions the keys of a topic are spread; nothing where that is not known yet.
    ///
    /// # Errors
    /// While the number of its partitions is not the one by which they were spread before.
    pub(crate) fn of(&self, topic: &str) -> Result<Option<i32>, TransportError> {
        match self.0.get(topic) {
            None => Ok(None),
            Some(Known { partitions, found }) if partitions == found => Ok(Some(*partitions)),
            Some(Known { partitions, found }) => {
                let detail = format!(
                    "the topic {topic:?} has {found} partitions now and had {partitions}, so keys would move and overtake \
                     themselves; when all that was sent is handled, call `confirm_partitions` in each process, or restart it"
                );
                Err(TransportError::new(TransportErrorKind::Nacked, "publish", detail))
            }
        }
    }

    /// A topic is sent to for the first time. Answers by how many partitions its keys are spread.
    pub(crate) fn add(&mut self, topic: &str, found: i32) -> i32 {
        self.0.entry(topic.to_owned()).or_insert(Known { partitions: found, found }).partitions
    }

    /// A look found so many partitions, or no such topic any more.
    pub(crate) fn look(&mut self, topic: &str, found: Option<i32>) -> Look {
        let Some(found) = found else {
            self.0.remove(topic);
            return Look::Same;
        };
        let Some(known) = self.0.get_mut(topic) else { return Look::Same };
        let is_news = found != known.found && found != known.partitions;
        known.found = found;
        if is_news { Look::Changed(known.partitions) } else { Look::Same }
    }

    /// Spreads keys over as many partitions as there are.
    pub(crate) fn confirm(&mut self, topic: &str) {
        if let Some(known) = self.0.get_mut(topic) {
            known.partitions = known.found;
        }
    }

    pub(crate) fn remove(&mut self, topic: &str) {
        self.0.remove(topic);
    }

    pub(crate) fn topics(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// The topics to which nothing is sent.
    pub(crate) fn changed(&self) -> Vec<String> {
        let changed = self.0.iter().filter(|(_, known)| known.partitions != known.found);
        changed.map(|(topic, _)| topic.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T-PUB-3: keys do not move to other partitions while older messages of theirs are under way.
    #[test]
    fn nothing_is_sent_to_a_topic_whose_partitions_changed_until_it_is_confirmed() {
        let mut spread = Spread::default();
        assert_eq!(spread.of("orders").unwrap(), None);
        assert_eq!(spread.add("orders", 12), 12);
        assert_eq!(spread.add("orders", 24), 12, "another call found it first");
        assert_eq!(spread.look("orders", Some(12)), Look::Same);
        assert_eq!(spread.look("orders", Some(24)), Look::Changed(12));
        assert_eq!(spread.look("orders", Some(24)), Look::Same, "it is told once");
        let error = spread.of("orders").unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Nacked);
        assert!(error.to_string().contains("has 24 partitions now and had 12"), "{error}");
        assert_eq!(spread.changed(), ["orders"]);
        spread.confirm("orders");
        assert_eq!(spread.of("orders").unwrap(), Some(24));
        assert!(spread.changed().is_empty());
    }

    #[test]
    fn a_topic_that_is_gone_is_forgotten() {
        let mut spread = Spread::default();
        spread.add("orders", 12);
        assert_eq!(spread.look("orders", None), Look::Same);
        assert_eq!(spread.of("orders").unwrap(), None);
        assert_eq!(spread.look("orders", Some(3)), Look::Same);
        spread.confirm("orders");
        assert!(spread.topics().is_empty());
    }
}
