//! Where a group begins in the partitions that it gets, and what it commits. All calls block.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};

use crate::subscription::group::From;
use crate::subscription::mark::Mark;
use crate::subscription::partition::Start;
use crate::subscription::state::Place;
use crate::topics;

/// What is committed in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Committed {
    offset: i64,
    mark: Option<Mark>,
}

/// What a group has committed in a topic, by partition.
#[derive(Debug, Default)]
pub(crate) struct Topic {
    partitions: i32,
    committed: BTreeMap<i32, Committed>,
}

impl Topic {
    /// Whether the group has a place in every partition.
    pub(crate) fn is_complete(&self) -> bool {
        self.partitions > 0 && (0..self.partitions).all(|partition| self.committed.contains_key(&partition))
    }

    /// Where the group begins in a partition of which the cluster has the records from `low` to before `high`; and whether that is
    /// to be committed before the first of them is read.
    ///
    /// A group that is new to a topic begins at its end, in each partition that the topic has then. Of several new members, each
    /// decides that for its own partitions. Partitions that are added later are read from their beginning, so nothing is missed.
    fn start(&self, partition: i32, from: From, low: i64, high: i64) -> (Start, bool) {
        let marks = self.committed.values().filter_map(|committed| committed.mark);
        let known = marks.map(|mark| mark.partitions).max();
        let partitions = known.unwrap_or(self.partitions);
        let at = |offset, handed_out| Start { offset, mark: Mark { handed_out, partitions } };
        match self.committed.get(&partition) {
            Some(Committed { offset, mark: Some(mark) }) => (Start { offset: *offset, mark: *mark }, false),
            // A tool moved the offset, so all that is there may have been handed out.
            Some(Committed { offset, mark: None }) => (at(*offset, high.max(*offset)), true),
            None => {
                let is_new = known.map_or(self.committed.is_empty(), |known| partition < known);
                let offset = if from == From::End && is_new { high } else { low };
                (at(offset, offset), true)
            }
        }
    }
}

/// Asks what the group has committed in a topic.
pub(crate) fn committed<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
    timeout: Duration,
) -> KafkaResult<Topic> {
    let unknown = || KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition);
    let partitions = topics::partitions(consumer.client(), topic, timeout)?.ok_or_else(unknown)?;
    let mut asked = TopicPartitionList::new();
    asked.add_partition_range(topic, 0, partitions - 1);
    let mut committed = BTreeMap::new();
    for element in consumer.committed_offsets(asked, timeout)?.elements() {
        element.error()?;
        if let Offset::Offset(offset) = element.offset() {
            committed.insert(element.partition(), Committed { offset, mark: Mark::parse(element.metadata()) });
        }
    }
    Ok(Topic { partitions, committed })
}

/// Where the group begins in these partitions. New places are committed before this returns.
pub(crate) fn starts<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    places: &[Place],
    from: impl Fn(&str) -> From,
    timeout: Duration,
) -> KafkaResult<Vec<(Place, Start)>> {
    let mut topics = BTreeMap::new();
    for topic in places.iter().map(|(topic, _)| topic).collect::<BTreeSet<_>>() {
        topics.insert(topic.clone(), committed(consumer, topic, timeout)?);
    }
    let (mut starts, mut new) = (Vec::new(), Vec::new());
    for place in places {
        let (topic, partition) = place;
        let known = &topics[topic];
        let is_known = known.committed.get(partition).is_some_and(|committed| committed.mark.is_some());
        let (low, high) = if is_known { (0, 0) } else { consumer.fetch_watermarks(topic, *partition, timeout)? };
        let (start, is_new) = known.start(*partition, from(topic), low, high);
        starts.push((place.clone(), start));
        if is_new {
            new.push((place.clone(), start));
        }
    }
    commit(consumer, &new)?;
    Ok(starts)
}

/// Commits places, and waits until the cluster has them.
pub(crate) fn commit<C: ConsumerContext>(consumer: &BaseConsumer<C>, places: &[(Place, Start)]) -> KafkaResult<()> {
    if places.is_empty() {
        return Ok(());
    }
    let mut list = TopicPartitionList::with_capacity(places.len());
    for ((topic, partition), start) in places {
        let mut element = list.add_partition(topic, *partition);
        element.set_offset(Offset::Offset(start.offset))?;
        element.set_metadata(start.mark.to_string());
    }
    consumer.commit(&list, CommitMode::Sync)
}

/// The partitions of a list.
pub(crate) fn of(list: &TopicPartitionList) -> Vec<Place> {
    list.elements().iter().map(|element| (element.topic().to_owned(), element.partition())).collect()
}

/// The list of partitions, each with its offset if it has one.
pub(crate) fn list(places: impl IntoIterator<Item = (Place, Option<i64>)>) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for ((topic, partition), offset) in places {
        let mut element = list.add_partition(&topic, partition);
        if let Some(offset) = offset {
            element.set_offset(Offset::Offset(offset))?;
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A partition, the offset that is committed, and what its mark says.
    type Known = (i32, i64, Option<(i64, i32)>);

    fn topic(partitions: i32, committed: &[Known]) -> Topic {
        let one = |(partition, offset, mark): &Known| {
            let mark = mark.map(|(handed_out, partitions)| Mark { handed_out, partitions });
            (*partition, Committed { offset: *offset, mark })
        };
        Topic { partitions, committed: committed.iter().map(one).collect() }
    }

    fn start(offset: i64, handed_out: i64, partitions: i32) -> Start {
        Start { offset, mark: Mark { handed_out, partitions } }
    }

    #[test]
    fn a_new_group_begins_at_the_end() {
        assert_eq!(topic(3, &[]).start(1, From::End, 2, 9), (start(9, 9, 3), true));
        // What is for this group only is all read.
        assert_eq!(topic(3, &[]).start(1, From::Beginning, 2, 9), (start(2, 2, 3), true));
    }

    #[test]
    fn the_second_of_two_new_members_begins_at_the_end_too() {
        let known = topic(2, &[(0, 5, Some((5, 2)))]);
        assert_eq!(known.start(1, From::End, 0, 9), (start(9, 9, 2), true));
        assert!(!known.is_complete());
        assert!(topic(2, &[(0, 5, None), (1, 5, None)]).is_complete());
        assert!(!topic(0, &[]).is_complete());
    }

    #[test]
    fn partitions_that_were_added_are_read_from_their_beginning() {
        let known = topic(4, &[(0, 5, Some((5, 2))), (1, 5, Some((5, 2)))]);
        assert_eq!(known.start(3, From::End, 0, 9), (start(0, 0, 2), true));
    }

    #[test]
    fn a_group_goes_on_where_it_was() {
        let known = topic(1, &[(0, 5, Some((4_096, 1)))]);
        assert_eq!(known.start(0, From::End, 0, 0), (start(5, 4_096, 1), false));
    }

    #[test]
    fn where_a_tool_moved_the_offset_all_may_have_been_handed_out() {
        let known = topic(1, &[(0, 2, None)]);
        assert_eq!(known.start(0, From::End, 0, 9), (start(2, 9, 1), true));
    }
}
