use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use saga_core::store::{StoreError, StoreErrorKind};

use crate::test_clock::ClockSource;

/// When a commit is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// When it is acknowledged: it survives a power loss.
    #[default]
    Full,
    /// At the next checkpoint: it survives the end of the process, and a power loss may undo the last commits.
    Normal,
}

/// How long to wait for another process that works on the file. The old process of a deployment has usually ended by then.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(30);

/// How a SQLite file is opened.
///
/// ```
/// use std::time::Duration;
///
/// use saga_sqlite::{SqliteOptions, Synchronous};
///
/// let options = SqliteOptions::new("orders.db")
///     .synchronous(Synchronous::Full)
///     .wait_for_lock(Duration::from_secs(5))
///     .on_wait(|path| eprintln!("waiting for the process that works on {}", path.display()));
/// ```
#[derive(Clone)]
pub struct SqliteOptions {
    pub(crate) path: PathBuf,
    pub(crate) synchronous: Synchronous,
    pub(crate) busy_timeout: Duration,
    pub(crate) group_jobs_max: usize,
    pub(crate) group_time_max: Duration,
    pub(crate) readers: usize,
    pub(crate) write_time_max: Duration,
    pub(crate) wait_for_lock: Duration,
    pub(crate) on_wait: Option<Arc<OnWait>>,
    pub(crate) read_only: bool,
    pub(crate) clock: ClockSource,
}

pub(crate) type OnWait = dyn Fn(&Path) + Send + Sync;

impl SqliteOptions {
    /// The options of a file that is created if it does not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            synchronous: Synchronous::Full,
            busy_timeout: Duration::from_secs(5),
            group_jobs_max: 256,
            group_time_max: Duration::from_millis(10),
            readers: 2,
            write_time_max: Duration::from_secs(30),
            wait_for_lock: WAIT_FOR_LOCK,
            on_wait: None,
            read_only: false,
            clock: ClockSource::MACHINE,
        }
    }

    /// The options that a URL names: `sqlite:orders.db`, or `sqlite:///var/lib/shop/orders.db`.
    ///
    /// # Errors
    /// When the URL has another scheme, or no path. Of the URL, the error repeats only the scheme.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        let refused = |problem: String| {
            let detail = format!("{problem}; write sqlite:PATH, for example sqlite:orders.db");
            StoreError::new(StoreErrorKind::NotAStore, "open", detail)
        };
        let path = match url.split_once(':') {
            Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
            Some((scheme, _)) => return Err(refused(format!("{scheme:?} is not the scheme of the SQLite store"))),
            None => return Err(refused("the store's URL has no scheme".to_owned())),
        };
        if path.is_empty() { Err(refused("the store's URL has no path".to_owned())) } else { Ok(Self::new(path)) }
    }

    /// When a commit is durable. The default is [`Synchronous::Full`].
    #[must_use]
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// How long the writer waits for another connection of the application that holds SQLite's write lock. The default
    /// is 5 seconds.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// The most calls that share one commit, at least 1. The default is 256.
    #[must_use]
    pub fn group_jobs_max(mut self, jobs: usize) -> Self {
        self.group_jobs_max = jobs.max(1);
        self
    }

    /// How long the writer takes further calls before it commits. The default is 10 milliseconds.
    #[must_use]
    pub fn group_time_max(mut self, time: Duration) -> Self {
        self.group_time_max = time;
        self
    }

    /// The number of reader threads, at least 1. The default is 2.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// The time limit of a closure that is given to [`write`](crate::SqliteStore::write). The default is 30 seconds.
    #[must_use]
    pub fn write_time_max(mut self, time: Duration) -> Self {
        self.write_time_max = time;
        self
    }

    /// How long to wait for another process that works on the file, before
    /// [`open_with`](crate::SqliteStore::open_with) returns an error that names this process. The wait ends at once when
    /// the other process ends in any way. The default is 30 seconds; [`Duration::MAX`] waits without a limit.
    #[must_use]
    pub fn wait_for_lock(mut self, wait: Duration) -> Self {
        self.wait_for_lock = wait;
        self
    }

    /// Called once, with the file's path, when this process begins to wait for another process that works on the file.
    /// The log has the event "waiting for the file lock" then, as a warning.
    #[must_use]
    pub fn on_wait(mut self, on_wait: impl Fn(&Path) + Send + Sync + 'static) -> Self {
        self.on_wait = Some(Arc::new(on_wait));
        self
    }

    /// The store's clock is that of an environment, such as `saga_testkit::VirtualTime`, instead of the machine's. Every time in the
    /// file is then that clock's, so the file is for one test: do not open it in production.
    #[cfg(feature = "test-clock")]
    #[must_use]
    pub fn test_clock(mut self, environment: Arc<dyn saga_core::env::Environment>) -> Self {
        self.clock = ClockSource::of(environment);
        self
    }

    /// The options with an absolute path.
    pub(crate) fn resolved(mut self) -> Result<Self, StoreError> {
        let refused = |detail: String| StoreError::new(StoreErrorKind::NotAStore, "open", detail);
        if self.path.as_os_str() == ":memory:" {
            let detail = "a store in memory is `saga_core::memory::MemoryStore`; name a file for this one";
            return Err(refused(detail.to_owned()));
        }
        self.path = std::path::absolute(&self.path)
            .map_err(|error| refused(format!("`{}` is not a valid path ({error})", self.path.display())))?;
        Ok(self)
    }

    /// Opens the file for reading only, also while another process works on it. Calls that write fail.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("path", &self.path)
            .field("synchronous", &self.synchronous)
            .field("busy_timeout", &self.busy_timeout)
            .field("group_jobs_max", &self.group_jobs_max)
            .field("group_time_max", &self.group_time_max)
            .field("readers", &self.readers)
            .field("write_time_max", &self.write_time_max)
            .field("wait_for_lock", &self.wait_for_lock)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_path() {
        let check = |url: &str, path: &str| assert_eq!(SqliteOptions::from_url(url).unwrap().path, Path::new(path));
        check("sqlite:orders.db", "orders.db");
        check("sqlite:/var/orders.db", "/var/orders.db");
        check("sqlite:///var/orders.db", "/var/orders.db");
        check("sqlite:a:b", "a:b");
    }

    #[test]
    fn another_process_is_waited_for_with_a_limit_unless_the_options_say_otherwise() {
        let options = SqliteOptions::new("orders.db");
        assert_eq!(options.wait_for_lock, Duration::from_secs(30));
        assert_eq!(options.wait_for_lock(Duration::MAX).wait_for_lock, Duration::MAX);
    }

    #[test]
    fn a_path_is_resolved_once() {
        let path = SqliteOptions::new("orders.db").resolved().unwrap().path;
        assert!(path.is_absolute() && path.ends_with("orders.db"), "{path:?}");
        for none in [":memory:", ""] {
            let error = SqliteOptions::new(none).resolved().unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::NotAStore, "{error}");
        }
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_sentence_without_its_secrets() {
        let check = |url: &str, says: &str| {
            let error = SqliteOptions::from_url(url).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::NotAStore);
            assert!(error.to_string().contains(says), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        };
        check("postgres://me:hunter2@db/shop", "\"postgres\" is not the scheme");
        check("orders.db", "has no scheme");
        check("sqlite:", "has no path");
        check("sqlite://", "has no path");
    }
}
