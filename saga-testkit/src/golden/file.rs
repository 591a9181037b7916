use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A golden file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct File {
    pub(super) saga: String,
    pub(super) version: u32,
    pub(super) digest: String,
    pub(super) shape: String,
    pub(super) input: String,
    /// The sagas that are steps of it, by the names of these steps. A file without them has such steps played as functions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) sub_sagas: BTreeMap<String, SubSaga>,
    /// What each step returned, by its name, or by `sub-saga>step`.
    pub(super) returned: BTreeMap<String, String>,
    pub(super) runs: Vec<Run>,
}

/// The definition of a saga that is a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubSaga {
    pub(super) saga: String,
    pub(super) version: u32,
    pub(super) digest: String,
    pub(super) shape: String,
}

/// A saga that was run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    /// The step that rejects, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rejects: Option<String>,
    /// Where the saga stood in front of each function.
    pub(super) stands: Vec<Stand>,
    pub(super) end: End,
}

/// A saga as it was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stand {
    /// In front of which function.
    pub(super) before: String,
    #[serde(flatten)]
    pub(super) rows: Rows,
    /// Its sub-sagas that were begun, by the names of the steps that they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) sub_sagas: BTreeMap<String, SubStand>,
}

/// A sub-saga as it was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubStand {
    /// The states name rows by their distance from it.
    pub(super) id: i64,
    pub(super) input: String,
    #[serde(flatten)]
    pub(super) rows: Rows,
}

/// What is stored of one saga.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rows {
    pub(super) status: String,
    pub(super) state: String,
    pub(super) records: Vec<Record>,
    pub(super) work: Vec<Work>,
}

/// A step record as it was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) step: String,
    pub(super) outcome: String,
    pub(super) position: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<String>,
}

/// A work row as it was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) kind: String,
    /// The states name rows that only wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<i64>,
    pub(super) step: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) payload: Option<String>,
}

/// How a saga ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) outcome: String,
    /// Where each step stood then.
    pub(super) steps: BTreeMap<String, String>,
    /// What mappings made of the saga's data, by the step that got it.
    pub(super) given: BTreeMap<String, String>,
    /// How its sub-sagas ended that were begun.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) sub_sagas: BTreeMap<String, SubEnd>,
}

/// How a sub-saga ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubEnd {
    pub(super) version: u32,
    pub(super) status: String,
    /// What it was started with.
    pub(super) input: String,
    pub(super) steps: BTreeMap<String, String>,
    pub(super) given: BTreeMap<String, String>,
}

impl File {
    pub(super) fn read(path: &Path) -> Result<Self, GoldenError> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(GoldenError::Missing { path: path.display().to_string() });
            }
            Err(error) => {
                return Err(GoldenError::File { path: path.display().to_string(), problem: error.to_string() });
            }
        };
        serde_json::from_slice(&text)
            .map_err(|error| GoldenError::File { path: path.display().to_string(), problem: error.to_string() })
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), GoldenError> {
        let failed = |problem: String| GoldenError::File { path: path.display().to_string(), problem };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
        }
        let mut text = serde_json::to_string_pretty(self).map_err(|error| failed(error.to_string()))?;
        text.push('\n');
        // A golden file that was cut off would be a version whose sagas are no longer tested.
        let new = path.with_added_extension("new");
        let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
        written.map_err(|error| failed(error.to_string()))
    }
}

/// The failure of a golden file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GoldenError {
    /// The file does not exist.
    #[error("there is no {path}; run the test once with UPDATE_GOLDEN=1, and add the file to the repository")]
    Missing {
        /// The file.
        path: String,
    },
    /// The file cannot be read or written.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: String,
        /// Why.
        problem: String,
    },
    /// The definition has changed since the file was written.
    #[error(
        "{saga} version {version} has changed since {path} was made: {}; sagas that are under way have the old steps, so give \
         the changed ones `.version({})` and a file of their own, and keep the old ones beside them until their sagas have \
         ended or were moved with a `Migration`",
        .differences.join(", and "), .version + 1
    )]
    Changed {
        /// The file.
        path: String,
        /// The saga's name.
        saga: String,
        /// Its version.
        version: u32,
        /// What changed, in sentences.
        differences: Vec<String>,
    },
    /// Stored sagas cannot be finished, or end differently.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Damaged(Vec<Damage>),
    /// The saga could not be run.
    #[error("the saga could not be recorded: {0}")]
    Unrecorded(String),
}

/// A stored saga that cannot be finished, or ends differently.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The point at which the saga was stored.
    pub stand: String,
    /// What differs, and what to do.
    pub problem: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a stored saga {}: {}", self.stand, self.problem)
    }
}
