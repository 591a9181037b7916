//! Archiving sagas before their payloads are deleted.

use std::error::Error;
use std::fmt::Write as _;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{HistoryEntry, SagaId, SagaWithSteps, Status, StepRecord, Timestamp, json};
use crate::key::{Key, Tenant};

/// Keeps sagas elsewhere before they are purged.
///
/// A saga with its sub-sagas is archived before its payloads are deleted, and only what was archived at its present version
/// is deleted. When an archive fails, nothing is purged until it works again.
#[async_trait]
pub trait Archive: Send + Sync + 'static {
    /// Keeps these sagas. It returns when they are durable.
    ///
    /// It is called again with the same sagas after a crash, and when they could not be purged. A saga that is kept twice must
    /// count once: overwrite by the [name](ArchiveBatch::name) of the batch, or by the id and the revision of the saga.
    ///
    /// # Cancel safety
    /// It is dropped when the runtime stops, and when it has taken longer than [`lease_ttl`](crate::Settings::lease_ttl), which
    /// counts as an error. What it kept so far is kept again later.
    ///
    /// # Errors
    /// Any error stops the purge. It is tried again after a pause, with fewer sagas.
    async fn store(&self, batch: &ArchiveBatch) -> Result<(), ArchiveError>;
}

/// Why sagas could not be archived.
pub type ArchiveError = Box<dyn Error + Send + Sync>;

/// Sagas that are about to be purged, each followed by its sub-sagas.
#[derive(Debug, Clone)]
pub struct ArchiveBatch {
    sagas: Vec<ArchivedSaga>,
}

impl ArchiveBatch {
    pub(crate) fn new(whole: Vec<SagaWithSteps>) -> Self {
        Self { sagas: whole.into_iter().map(ArchivedSaga::from).collect() }
    }

    /// The sagas.
    pub fn sagas(&self) -> &[ArchivedSaga] {
        &self.sagas
    }

    /// A name of 64 hexadecimal digits that is the same whenever the batch has the same sagas at the same revisions. Sagas of another
    /// store, or of one that was restored, have another name, also where their ids are the same.
    pub fn name(&self) -> String {
        let mut hash = Sha256::new();
        for saga in &self.sagas {
            hash.update(saga.id.0.to_be_bytes());
            hash.update(saga.revision.to_be_bytes());
            hash.update(saga.started_at.0.to_be_bytes());
            for text in [saga.tenant.as_str(), saga.key.as_str()] {
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text);
            }
        }
        in_hexadecimal(&hash.finalize())
    }

    /// The sagas as JSON lines: one object for each, without line feeds in it.
    pub fn to_json_lines(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        for saga in &self.sagas {
            // Texts, numbers and JSON always encode.
            lines.extend(serde_json::to_vec(saga).unwrap_or_default());
            lines.push(b'\n');
        }
        lines
    }
}

/// A saga as it is archived. It is written as one JSON object: besides these fields it has the `input`, the `state` of the
/// machine, the step `records` in the order of their positions, and the `history`, oldest first. Times are RFC 3339 in UTC;
/// payloads are the JSON that they are, or a text that begins with `base16:` where a payload is none.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ArchivedSaga {
    /// The id of its row.
    pub id: SagaId,
    /// Its tenant.
    pub tenant: Tenant,
    /// Its key. The key of a sub-saga begins with the key of its outer saga and `>`.
    pub key: Key,
    /// The name of its definition.
    pub saga: String,
    /// The version of its definition.
    pub version: u32,
    /// How it ended.
    pub status: Status,
    /// How many decisions about it were committed.
    pub revision: u64,
    /// When it was started.
    #[serde(serialize_with = "json::time")]
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(serialize_with = "json::optional_time")]
    pub ended_at: Option<Timestamp>,
    input: ArchivedPayload,
    /// The state of the machine.
    state: ArchivedPayload,
    records: Vec<ArchivedRecord>,
    history: Vec<ArchivedEntry>,
}

/// A step record as it is archived.
#[derive(Debug, Clone, Serialize)]
struct ArchivedRecord {
    step: String,
    outcome: &'static str,
    attempts: u32,
    #[serde(serialize_with = "json::time")]
    recorded_at: Timestamp,
    input: Option<ArchivedPayload>,
    output: Option<ArchivedPayload>,
    error: Option<ArchivedPayload>,
}

/// An entry of the history as it is archived.
#[derive(Debug, Clone, Serialize)]
struct ArchivedEntry {
    #[serde(serialize_with = "json::time")]
    at: Timestamp,
    kind: &'static str,
    step: Option<String>,
    attempt: u32,
    detail: String,
}

/// A payload as it is archived: JSON.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
struct ArchivedPayload(Box<RawValue>);

impl ArchivedPayload {
    fn of(bytes: &[u8]) -> Self {
        let json = std::str::from_utf8(bytes).ok().and_then(|text| serde_json::from_str::<Box<RawValue>>(text).ok());
        // A line of the archive has no line feed in it.
        let json = json.filter(|json| !json.get().contains(['\n', '\r']));
        Self(json.unwrap_or_else(|| as_text(bytes)))
    }
}

fn as_text(bytes: &[u8]) -> Box<RawValue> {
    // Such a text is JSON.
    serde_json::value::to_raw_value(&format!("base16:{}", in_hexadecimal(bytes))).unwrap_or_default()
}

fn in_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        // A string takes whatever is written.
        _ = write!(digits, "{byte:02x}");
        digits
    })
}

impl From<SagaWithSteps> for ArchivedSaga {
    fn from(whole: SagaWithSteps) -> Self {
        let SagaWithSteps { saga, records, history, .. } = whole;
        Self {
            id: saga.id,
            tenant: saga.tenant,
            key: saga.key,
            saga: saga.definition.name.to_string(),
            version: saga.definition.version,
            status: saga.status,
            revision: saga.version,
            started_at: saga.started_at,
            ended_at: saga.ended_at,
            input: ArchivedPayload::of(&saga.input),
            state: ArchivedPayload::of(&saga.state),
            records: records.into_iter().map(ArchivedRecord::from).collect(),
            history: history.into_iter().map(ArchivedEntry::from).collect(),
        }
    }
}

impl From<StepRecord> for ArchivedRecord {
    fn from(record: StepRecord) -> Self {
        let payload = |bytes: Option<Vec<u8>>| bytes.map(|bytes| ArchivedPayload::of(&bytes));
        Self {
            step: record.step.to_string(),
            outcome: record.outcome.as_str(),
            attempts: record.attempts,
            recorded_at: record.recorded_at,
            input: payload(record.input),
            output: payload(record.output),
            error: payload(record.error),
        }
    }
}

impl From<(Timestamp, HistoryEntry)> for ArchivedEntry {
    fn from((at, entry): (Timestamp, HistoryEntry)) -> Self {
        Self {
            at,
            kind: entry.kind.as_str(),
            step: entry.step.map(|step| step.to_string()),
            attempt: entry.attempt,
            detail: entry.detail,
        }
    }
}
