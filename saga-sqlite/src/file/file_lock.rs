//! The lock that lets one process work on a file: a lock on the file beside it.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use saga_core::store::{RetryClass, StoreError, StoreErrorKind};

use crate::clock::Clock;
use crate::error::misuse;
use crate::options::SqliteOptions;

/// How often a waiting process checks whether the lock is free.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A lock file holds a process id and nothing else.
const LOCK_FILE_BYTES_MAX: u64 = 32;

/// The files that this process has open. With the system's lock alone, a process would wait for itself.
static OPEN_FILES: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

/// The lock on a file. It is released when it is dropped, or when the process ends in any way.
#[derive(Debug)]
pub(crate) struct FileLock {
    // The fields are dropped in this order: the system's lock is free before the entry is.
    _file: File,
    _place: OpenFile,
}

#[derive(Debug)]
struct OpenFile(PathBuf);

impl FileLock {
    /// Takes the lock, and waits for it as long as the options say. `given_up` says that the caller of `open` is gone.
    pub(crate) fn take(
        options: &SqliteOptions,
        clock: &Clock,
        given_up: impl Fn() -> bool,
    ) -> Result<Self, StoreError> {
        let path = lock_path(&options.path);
        let mut file = open(&path)?;
        let place = OpenFile::take(&path, &options.path)?;
        let began = clock.elapsed();
        let mut is_reported = false;
        while !try_lock(&file, &path)? {
            if !is_reported {
                report_wait(options, owner(&mut file));
                is_reported = true;
            }
            if clock.elapsed().saturating_sub(began) >= options.wait_for_lock || given_up() {
                return Err(held_by_other(options, owner(&mut file)));
            }
            std::thread::park_timeout(POLL_INTERVAL);
        }
        note_owner(&mut file);
        Ok(Self { _file: file, _place: place })
    }
}

impl OpenFile {
    fn take(lock: &Path, path: &Path) -> Result<Self, StoreError> {
        let lock = lock.canonicalize().unwrap_or_else(|_| lock.to_path_buf());
        if OPEN_FILES.lock().unwrap_or_else(PoisonError::into_inner).insert(lock.clone()) {
            return Ok(Self(lock));
        }
        let path = path.display();
        Err(misuse(
            "open",
            format!(
                "{path} is open in this process already; clone that store instead of opening it again, or await its \
                 `close()` first"
            ),
        ))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        OPEN_FILES.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// `orders.db` is locked by `orders.db.lock`, also when it is opened through a link.
fn lock_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.canonicalize().unwrap_or_else(|_| path.to_path_buf()));
    name.push(".lock");
    PathBuf::from(name)
}

fn open(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(|error| {
        let detail = format!(
            "the lock file {} cannot be written ({error}); check the permissions of the folder",
            path.display()
        );
        StoreError::new(StoreErrorKind::NotWritable, "open", detail).with_source(error)
    })
}

fn try_lock(file: &File, path: &Path) -> Result<bool, StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => {
            let detail = format!("{} cannot be locked ({error}); use a file system with file locks", path.display());
            Err(StoreError::new(StoreErrorKind::NotWritable, "open", detail).with_source(error))
        }
    }
}

fn report_wait(options: &SqliteOptions, owner: Option<u32>) {
    let path = options.path.display();
    let limit = (options.wait_for_lock < Duration::MAX).then_some(tracing::field::debug(options.wait_for_lock));
    tracing::warn!(%path, process = owner, limit, "waiting for the file lock");
    if let Some(on_wait) = &options.on_wait {
        on_wait(&options.path);
    }
}

fn held_by_other(options: &SqliteOptions, owner: Option<u32>) -> StoreError {
    let path = options.path.display();
    let holder = owner.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"));
    let waited = match options.wait_for_lock {
        Duration::ZERO => String::new(),
        wait => format!(" and did not end within {wait:?}"),
    };
    let detail = format!(
        "{holder} works on {path}{waited}, and only one process at a time can; end that process, wait longer \
         (`SqliteOptions::wait_for_lock`), open the file read only, or use PostgreSQL for several processes"
    );
    StoreError::new(StoreErrorKind::Unavailable, "open", detail).with_class(RetryClass::Transient)
}

/// The process that holds the lock, for the message. The lock is the system's, so the content of the file is not needed
/// for it.
fn owner(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(LOCK_FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn note_owner(file: &mut File) {
    let id = std::process::id().to_string();
    let noted = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(id.as_bytes()));
    if let Err(error) = noted {
        tracing::debug!(%error, "process id not written to the lock file");
    }
}
