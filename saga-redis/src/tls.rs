//! TLS is a feature. The certificates that are trusted are those of the system, or of `SSL_CERT_FILE`.

use crate::error::LockError;

/// Whether an address asks for TLS.
pub(crate) fn is_encrypted(url: &str) -> bool {
    url.starts_with("rediss:") || url.starts_with("valkeys:")
}

/// Sees to it that the process knows where its cryptography comes from: a crate that was built with two sources cannot choose.
#[cfg(feature = "tls-ring")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature it fails")]
pub(crate) fn prepare() -> Result<(), LockError> {
    // Another crate or the application may have chosen, also at this moment.
    _ = rustls::crypto::ring::default_provider().install_default();
    Ok(())
}

/// Says that it cannot.
#[cfg(not(feature = "tls-ring"))]
pub(crate) fn prepare() -> Result<(), LockError> {
    let problem =
        "an address with rediss:// needs the feature `tls-ring` of saga-redis, or `redis-tls` of saga-reservations";
    Err(LockError::Invalid(problem.to_owned()))
}
