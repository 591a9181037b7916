//! Whether the file that was opened is still the one under its name.

use std::path::{Path, PathBuf};

use crate::error::GroupError;

/// The file as it was when it was opened. SQLite goes on writing into one that was deleted, and all of it is gone when
/// the process ends.
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

    /// What to answer where the file is not there any more, or is another one.
    pub(crate) fn lost_file(&self) -> Option<GroupError> {
        // A file without an identity is on a system that does not give any.
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
