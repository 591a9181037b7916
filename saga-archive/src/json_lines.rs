use std::io::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use flate2::Compression;
use flate2::write::GzEncoder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use saga_core::store::{Archive, ArchiveBatch, ArchiveError};

/// Keeps each batch of sagas as one object of JSON lines, compressed with gzip.
///
/// The object is `prefix/2026-01/<name>.jsonl.gz`: the month in which the first saga of the batch ended, and the
/// [name](ArchiveBatch::name) of the batch. A batch that is archived again overwrites its object. After a crash, the same saga
/// can be in two batches; its lines are equal, so a reader drops what has the same `id`, `revision` and `started_at`. Several stores may
/// share a prefix.
///
/// `zcat sagas/2026-01/*.jsonl.gz | jq 'select(.key == "o-1")'` finds a saga. A sub-saga follows its outer saga.
#[derive(Debug, Clone)]
pub struct JsonLines {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl JsonLines {
    /// Keeps the objects in this folder, which must exist, without a prefix. An object and its name are on the disk when the
    /// archive answers.
    ///
    /// # Errors
    /// When the folder does not exist or cannot be read.
    pub fn in_folder(folder: impl AsRef<std::path::Path>) -> Result<Self, object_store::Error> {
        Ok(Self::new(LocalFileSystem::new_with_prefix(folder)?.with_fsync(true)))
    }

    /// Keeps the objects in this store, without a prefix. A [`LocalFileSystem`] loses objects when the power fails, unless it
    /// was made with [`with_fsync`](LocalFileSystem::with_fsync): use [`in_folder`](Self::in_folder).
    pub fn new(store: impl ObjectStore) -> Self {
        Self { store: Arc::new(store), prefix: Path::default() }
    }

    /// Puts this in front of the names of the objects.
    #[must_use]
    pub fn prefix(self, prefix: impl Into<Path>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// Where a batch is kept.
    fn path(&self, batch: &ArchiveBatch) -> Path {
        let ended_at = batch.sagas().iter().find_map(|saga| saga.ended_at).unwrap_or_default();
        // The beginning of a time is its year and month.
        let month: String = ended_at.to_string().chars().take("2026-01".len()).collect();
        let name = format!("{}.jsonl.gz", batch.name());
        self.prefix.clone().join(month).join(name)
    }
}

#[async_trait]
impl Archive for JsonLines {
    async fn store(&self, batch: &ArchiveBatch) -> Result<(), ArchiveError> {
        let path = self.path(batch);
        let lines = batch.to_json_lines();
        // A batch may have many megabytes, and a thread of the runtime has other tasks.
        let object = tokio::task::spawn_blocking(move || compressed(&lines)).await??;
        self.store.put(&path, object.into()).await?;
        Ok(())
    }
}

fn compressed(lines: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(lines)?;
    encoder.finish()
}
