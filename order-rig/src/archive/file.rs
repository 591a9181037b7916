use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::PathBuf,
};

use async_trait::async_trait;
use saga_core::store::{Archive, ArchiveBatch, ArchiveError};

use super::ArchivedSaga;

/// An archive in a file, which has a line of JSON for each saga.
#[derive(Debug, Clone)]
pub struct FileArchive {
    path: PathBuf,
}

impl FileArchive {
    /// The archive in that file, which is made when it is needed.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// What was archived, in the order in which it was.
    pub fn read(&self) -> anyhow::Result<Vec<ArchivedSaga>> {
        match fs::read_to_string(&self.path) {
            // A process that was killed while it wrote has left a part of a line, and what it wrote was not purged.
            Ok(text) => Ok(text.lines().filter_map(|line| ArchivedSaga::parse(line).ok()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl Archive for FileArchive {
    async fn store(&self, batch: &ArchiveBatch) -> Result<(), ArchiveError> {
        // The last line in the file may have no end.
        let lines = [b"\n".to_vec(), batch.to_json_lines()].concat();
        let path = self.path.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut file = File::options().create(true).append(true).open(path)?;
            file.write_all(&lines)?;
            file.sync_data()
        });
        Ok(written.await??)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_not_written_to_its_end_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = FileArchive::at(folder.path().join("it"));
        assert_eq!(archive.read().expect("nothing yet").len(), 0);
        let line = r#"{"id":7,"key":"A","saga":"create-order","status":"completed","revision":3,"input":{},"records":[],"history":[]}"#;
        fs::write(&archive.path, format!("{}\n{line}\n", &line[..40])).expect("a file");
        let read = archive.read().expect("a file");
        assert_eq!(read.iter().map(|saga| (saga.id, &*saga.key)).collect::<Vec<_>>(), [(7, "A")]);
    }
}
