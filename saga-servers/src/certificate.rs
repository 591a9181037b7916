use std::path::PathBuf;

/// What a broker shows who connects with TLS, as files in PEM.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}
