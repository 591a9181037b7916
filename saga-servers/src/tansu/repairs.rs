//! What is done to the messages of a client and to the broker's answers.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::bytes::{Reader, write_text};

const PRODUCE: i16 = 0;
const FETCH: i16 = 1;
const LIST_OFFSETS: i16 = 2;
const OFFSET_COMMIT: i16 = 8;
const OFFSET_FETCH: i16 = 9;
const API_VERSIONS: i16 = 18;

/// The versions in which the repaired requests are sent, which the broker is made to name as its highest. Later ones are packed.
const HIGHEST: [(i16, i16); 3] = [(LIST_OFFSETS, 5), (OFFSET_COMMIT, 7), (OFFSET_FETCH, 5)];
/// What a request for offsets says that asks for the end.
const LATEST: i64 = -1;

/// How long the broker waits for records behind the end of a partition before it says where that is.
const WAIT_MILLIS: i32 = 100;

/// A partition of a topic.
pub(super) type Place = (String, i32);

/// What clients committed with their offsets, by group and partition. It outlives the broker's process.
pub(super) type Committed = Arc<Mutex<HashMap<(String, Place), String>>>;

/// Where in an answer the end of a partition stands, and what is said there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) place: Place,
    pub(super) offset: i64,
    pub(super) position: usize,
}

/// A request whose answer is repaired.
#[derive(Debug)]
pub(super) enum Asked {
    Versions { version: i16 },
    Ends(BTreeMap<Place, i64>),
    Commit { group: String, metadata: BTreeMap<Place, String> },
    Offsets { group: String },
}

impl Asked {
    /// What a request asks; nothing where its answer is left as it is.
    pub(super) fn read(request: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(request);
        let (key, version, _number) = (reader.i16()?, reader.i16()?, reader.i32()?);
        if key == API_VERSIONS {
            return Some(Self::Versions { version });
        }
        HIGHEST.contains(&(key, version)).then_some(())?;
        let _client = reader.text()?;
        Some(match key {
            LIST_OFFSETS => {
                let _replica_and_isolation = reader.bytes(5)?;
                Self::Ends(reader.topics(|reader| {
                    let (number, _epoch) = (reader.i32()?, reader.i32()?);
                    Some((number, reader.i64()?))
                })?)
            }
            OFFSET_COMMIT => {
                let group = reader.text()?;
                let (_generation, _member, _instance) = (reader.i32()?, reader.text()?, reader.text()?);
                let metadata = reader.topics(|reader| {
                    let (number, _offset, _epoch) = (reader.i32()?, reader.i64()?, reader.i32()?);
                    Some((number, reader.text()?))
                })?;
                Self::Commit { group, metadata }
            }
            _ => Self::Offsets { group: reader.text()? },
        })
    }
}

/// Whether a request has records.
pub(super) fn is_write(request: &[u8]) -> bool {
    request.starts_with(&PRODUCE.to_be_bytes())
}

/// Whether a request asks for records.
pub(super) fn is_read(request: &[u8]) -> bool {
    request.starts_with(&FETCH.to_be_bytes())
}

/// The number of a request, and that of an answer.
pub(super) fn number_of(message: &[u8], is_request: bool) -> Option<i32> {
    Reader::new(message.get(if is_request { 4 } else { 0 }..)?).i32()
}

/// Names no version as the broker's highest that is not repaired.
pub(super) fn limit_versions(answer: &mut [u8], version: i16) -> Option<()> {
    let mut reader = Reader::new(answer);
    let (_number, _error) = (reader.i32()?, reader.i16()?);
    let is_packed = version >= 3;
    let count = if is_packed { i32::from(*reader.bytes(1)?.first()?) - 1 } else { reader.i32()? };
    let mut found = Vec::new();
    for _ in 0..count {
        let (key, _lowest, position) = (reader.i16()?, reader.i16()?, reader.position());
        let highest = reader.i16()?;
        if is_packed {
            reader.bytes(1)?;
        }
        let limit = HIGHEST.iter().find(|(limited, _)| *limited == key).map_or(highest, |(_, limit)| *limit);
        found.push((position, highest.min(limit)));
    }
    for (position, highest) in found {
        answer.get_mut(position..position + 2)?.copy_from_slice(&highest.to_be_bytes());
    }
    Some(())
}

/// Remembers what was committed, of the partitions in which it was.
pub(super) fn note(
    answer: &[u8],
    committed: &Committed,
    group: &str,
    metadata: &BTreeMap<Place, String>,
) -> Option<()> {
    let mut reader = Reader::new(answer);
    let (_number, _throttle) = (reader.i32()?, reader.i32()?);
    let errors = reader.topics(|reader| Some((reader.i32()?, reader.i16()?)))?;
    let mut committed = committed.lock().unwrap_or_else(PoisonError::into_inner);
    for (place, text) in metadata.iter().filter(|(place, _)| errors.get(*place) == Some(&0)) {
        committed.insert((group.to_owned(), place.clone()), text.clone());
    }
    Some(())
}

/// The answer to a question for committed offsets, with what was committed with them.
pub(super) fn with_metadata(answer: &[u8], committed: &Committed, group: &str) -> Option<Vec<u8>> {
    let mut reader = Reader::new(answer);
    let committed = committed.lock().unwrap_or_else(PoisonError::into_inner);
    let mut written = reader.bytes(8)?.to_vec();
    let topics = reader.i32()?;
    written.extend(topics.to_be_bytes());
    for _ in 0..topics {
        let (topic, partitions) = (reader.text()?, reader.i32()?);
        write_text(&mut written, &topic);
        written.extend(partitions.to_be_bytes());
        for _ in 0..partitions {
            let (number, offset, epoch) = (reader.i32()?, reader.i64()?, reader.i32()?);
            let (said, error) = (reader.text()?, reader.bytes(2)?);
            let known = committed.get(&(group.to_owned(), (topic.clone(), number)));
            written.extend(number.to_be_bytes());
            written.extend(offset.to_be_bytes());
            written.extend(epoch.to_be_bytes());
            write_text(&mut written, known.filter(|_| offset >= 0).unwrap_or(&said));
            written.extend(error);
        }
    }
    written.extend(reader.bytes(answer.len() - reader.position())?);
    Some(written)
}

/// What an answer says of the ends of partitions.
pub(super) fn ends(answer: &[u8], asked: &BTreeMap<Place, i64>) -> Option<Vec<End>> {
    let mut reader = Reader::new(answer);
    let (_number, _throttle) = (reader.i32()?, reader.i32()?);
    let said = reader.topics(|reader| {
        let (number, error, _time) = (reader.i32()?, reader.i16()?, reader.i64()?);
        let (position, offset, _epoch) = (reader.position(), reader.i64()?, reader.i32()?);
        Some((number, (error, position, offset)))
    })?;
    // A partition that ends at its beginning has no batch.
    let is_wrong =
        |place: &Place, error: i16, offset: i64| error == 0 && offset > 0 && asked.get(place) == Some(&LATEST);
    let ends = said.into_iter().filter(|(place, (error, _, offset))| is_wrong(place, *error, *offset));
    Some(ends.map(|(place, (_, position, offset))| End { place, offset, position }).collect())
}

/// A request that reads a partition from an offset, whose answer says where it ends.
pub(super) fn fetch((topic, partition): &Place, offset: i64) -> Vec<u8> {
    const VERSION: i16 = 4;
    let mut request = [FETCH.to_be_bytes(), VERSION.to_be_bytes()].concat();
    request.extend(0_i32.to_be_bytes());
    write_text(&mut request, "repairs");
    // No replica asks. It waits for a moment, since it is else answered with nothing at all, and wants a byte.
    for number in [-1_i32, WAIT_MILLIS, 1, 1] {
        request.extend(number.to_be_bytes());
    }
    request.push(0);
    request.extend(1_i32.to_be_bytes());
    write_text(&mut request, topic);
    request.extend(1_i32.to_be_bytes());
    request.extend(partition.to_be_bytes());
    request.extend(offset.to_be_bytes());
    request.extend(1_i32.to_be_bytes());
    request
}

/// Where the partition ends that was read.
pub(super) fn end_in(answer: &[u8]) -> Option<i64> {
    let mut reader = Reader::new(answer);
    let (_number, _throttle, _topics) = (reader.i32()?, reader.i32()?, reader.i32()?);
    let (_topic, _partitions, _partition) = (reader.text()?, reader.i32()?, reader.i32()?);
    let (error, end) = (reader.i16()?, reader.i64()?);
    (error == 0 && end >= 0).then_some(end)
}
