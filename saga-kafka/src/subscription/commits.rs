//! Commits the places of a group. A topic that the cluster refuses holds up no other one.

use std::collections::BTreeMap;

use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};

use crate::subscription::partition::Start;
use crate::subscription::state::Place;

/// The result of a commit.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    pub(crate) committed: Vec<(Place, Start)>,
    /// The topics whose places the cluster refused, and why.
    pub(crate) refused: BTreeMap<String, KafkaError>,
    /// Why the other places were not committed, whatever their topic.
    pub(crate) failure: Option<KafkaError>,
}

/// Commits places by `commit`: all together, and topic by topic if the cluster refuses that because of a topic.
///
/// The cluster answers for each partition, but librdkafka returns only one of its errors.
pub(crate) fn commit_apart(
    places: Vec<(Place, Start)>,
    mut commit: impl FnMut(&[(Place, Start)]) -> KafkaResult<()>,
) -> Commits {
    let mut commits = Commits::default();
    match commit(&places) {
        Ok(()) => commits.committed = places,
        Err(error) if is_about_a_topic(&error) => {
            for (topic, places) in by_topic(places) {
                match commit(&places) {
                    Ok(()) => commits.committed.extend(places),
                    Err(error) if is_about_a_topic(&error) => _ = commits.refused.insert(topic, error),
                    Err(error) => {
                        commits.failure = Some(error);
                        break;
                    }
                }
            }
        }
        Err(error) => commits.failure = Some(error),
    }
    commits
}

fn by_topic(places: Vec<(Place, Start)>) -> BTreeMap<String, Vec<(Place, Start)>> {
    let mut topics = BTreeMap::<_, Vec<_>>::new();
    for (place, start) in places {
        topics.entry(place.0.clone()).or_default().push((place, start));
    }
    topics
}

/// Whether another topic may succeed where this error came from one.
fn is_about_a_topic(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::TopicAuthorizationFailed
                | Code::UnknownTopicOrPartition
                | Code::UnknownTopic
                | Code::UnknownPartition
                | Code::InvalidTopic
                | Code::OffsetMetadataTooLarge
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::mark::Mark;

    const FORBIDDEN: KafkaError = KafkaError::ConsumerCommit(RDKafkaErrorCode::TopicAuthorizationFailed);
    const GONE: KafkaError = KafkaError::ConsumerCommit(RDKafkaErrorCode::NotCoordinator);

    fn places(topics: &[&str]) -> Vec<(Place, Start)> {
        let start = Start { offset: 5, mark: Mark { handed_out: 5, partitions: 2 } };
        topics.iter().flat_map(|topic| [0, 1].map(|partition| (((*topic).to_owned(), partition), start))).collect()
    }

    fn topics(places: &[(Place, Start)]) -> Vec<&str> {
        places.iter().map(|((topic, _), _)| topic.as_str()).collect()
    }

    #[test]
    fn a_topic_that_is_refused_holds_up_no_other() {
        let commits = commit_apart(places(&["a", "forbidden", "z"]), |places| {
            if topics(places).contains(&"forbidden") { Err(FORBIDDEN) } else { Ok(()) }
        });
        assert_eq!(topics(&commits.committed), ["a", "a", "z", "z"]);
        assert_eq!(commits.refused.into_iter().collect::<Vec<_>>(), [("forbidden".to_owned(), FORBIDDEN)]);
        assert_eq!(commits.failure, None);
    }

    #[test]
    fn one_call_commits_what_nobody_refuses() {
        let mut calls = 0;
        let commits = commit_apart(places(&["a", "z"]), |_| {
            calls += 1;
            Ok(())
        });
        assert_eq!((calls, commits.committed.len(), commits.refused.len()), (1, 4, 0));
    }

    #[test]
    fn a_cluster_that_does_not_answer_is_not_asked_for_each_topic() {
        let mut calls = 0;
        let commits = commit_apart(places(&["a", "b", "c"]), |places| {
            calls += 1;
            Err(if places.len() > 2 { FORBIDDEN } else { GONE })
        });
        assert_eq!((calls, commits.committed.len(), commits.failure), (2, 0, Some(GONE)));
        let commits = commit_apart(places(&["a", "b"]), |_| Err(GONE));
        assert_eq!(commits.failure, Some(GONE));
    }
}
