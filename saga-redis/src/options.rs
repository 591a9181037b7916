//! How the lock service uses Redis.

use std::fmt;
use std::time::Duration;

use redis::{ConnectionInfo, IntoConnectionInfo as _};

use crate::error::LockError;
use crate::tls::{self, is_encrypted};

const PREFIX_BYTES_MAX: usize = 40;

/// The address of Redis, and the limits of the lock service.
///
/// ```
/// use std::time::Duration;
///
/// use saga_redis::RedisOptions;
///
/// let options = RedisOptions::new("redis://:secret@127.0.0.1:6379").prefix("shop").replicas(1);
/// assert!(!format!("{options:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct RedisOptions {
    pub(crate) urls: Vec<String>,
    pub(crate) is_cluster: bool,
    pub(crate) prefix: String,
    pub(crate) replicas: u32,
    pub(crate) confirm_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
}

impl RedisOptions {
    /// One Redis server, as in `redis://user:password@host:6379`, or `rediss://` with TLS (feature `tls-ring`). The address leads to the primary also after a failover.
    pub fn new(url: impl Into<String>) -> Self {
        Self::of(vec![url.into()], false)
    }

    /// A Redis cluster: the addresses of some of its nodes.
    pub fn cluster(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::of(urls.into_iter().map(Into::into).collect(), true)
    }

    fn of(urls: Vec<String>, is_cluster: bool) -> Self {
        Self {
            urls,
            is_cluster,
            prefix: "saga".to_owned(),
            replicas: 0,
            confirm_timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(5),
        }
    }

    /// What the keys in Redis begin with: 1 to 40 bytes of ASCII letters, digits, `_`, `.` and `-`. The default is `saga`.
    /// Services with the same prefix share their locks, and must share their epochs.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How many replicas must confirm a grant and a renewal, by `WAIT`, before it counts. The default is none: then a
    /// failover may lose a lock that was granted. Replicas that confirm keep one connection waiting, so grants of a process
    /// take turns.
    #[must_use]
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.replicas = replicas;
        self
    }

    /// How long replicas may take to confirm. The default is one second.
    #[must_use]
    pub fn confirm_timeout(mut self, timeout: Duration) -> Self {
        self.confirm_timeout = timeout;
        self
    }

    /// How long connecting may take. The default is 5 seconds.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long an answer may take, without the time for replicas. The default is 5 seconds. A call that waits for earlier ones, so that it
    /// shares a call of Redis with others, may take as long again.
    #[must_use]
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// The addresses, read, and what they may be called in errors.
    pub(crate) fn servers(&self) -> Result<(Vec<ConnectionInfo>, String), LockError> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if !(1..=PREFIX_BYTES_MAX).contains(&self.prefix.len()) || !self.prefix.bytes().all(is_name) {
            let problem = format!(
                "the prefix {:?} is not 1 to {PREFIX_BYTES_MAX} bytes of ASCII letters, digits, `_`, `.` and `-`",
                self.prefix
            );
            return Err(LockError::Invalid(problem));
        }
        if self.urls.iter().any(|url| is_encrypted(url)) {
            tls::prepare()?;
        }
        // What the parser says may have the password in it.
        let unreadable = |_| LockError::Invalid("an address is not like redis://user:password@host:6379".to_owned());
        let read = self.urls.iter().map(|url| url.as_str().into_connection_info().map_err(unreadable));
        let servers: Vec<ConnectionInfo> = read.collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(LockError::Invalid("there is no address of Redis".to_owned()));
        }
        let shown: Vec<String> = servers.iter().map(|server| server.addr().to_string()).collect();
        Ok((servers, shown.join(", ")))
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.servers().map_or_else(|_| "..".to_owned(), |(_, shown)| shown);
        f.debug_struct("RedisOptions")
            .field("servers", &servers)
            .field("is_cluster", &self.is_cluster)
            .field("prefix", &self.prefix)
            .field("replicas", &self.replicas)
            .field("confirm_timeout", &self.confirm_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("response_timeout", &self.response_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let options = RedisOptions::cluster(["redis://ada:secret@one:1", "redis://:secret@two:2"]);
        assert!(format!("{options:?}").contains("one:1, two:2"), "{options:?}");
        for url in ["redis://:secret@:port", "secret", "redis://:secret@host:99999999"] {
            let options = RedisOptions::new(url);
            let error = options.servers().unwrap_err();
            assert!(!format!("{options:?} {error} {error:?}").contains("secret"), "{options:?} {error:?}");
        }
    }

    #[test]
    fn a_prefix_has_no_braces() {
        let error = RedisOptions::new("redis://host").prefix("a{b").servers().unwrap_err().to_string();
        assert!(error.contains("the prefix \"a{b\""), "{error}");
    }
}
