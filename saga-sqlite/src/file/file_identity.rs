//! Whether the opened file is still the one at its path.

use std::path::{Path, PathBuf};

use crate::error::GroupError;

/// The identity of the opened file. SQLite would go on writing into a deleted file, and all of that is gone when the
/// process ends.
#[derive(Debug)]
pub(crate) struct FileIdentity {
    path: PathBuf,
    identity: Option<Identity>,
}

type Identity = (u64, u64);

impl FileIdentity {
    pub(crate) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: identity(path) }
    }

    /// The error if the file is gone or replaced.
    pub(crate) fn lost_file(&self) -> Option<GroupError> {
        // Some systems give a file no identity.
        let is_same = self.identity.is_none() || identity(&self.path) == self.identity;
        (!is_same).then(|| GroupError::file_moved(&self.path))
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(_path: &Path) -> Option<Identity> {
    None
}
