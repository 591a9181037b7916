use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::error::Error;

/// What a broker shows who connects with TLS, as files in PEM.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// A certificate for a broker on this machine, the authority that signed it, and another one of the same name that signed nothing. Openssl
/// makes them; they are removed with this value.
#[derive(Debug)]
pub struct Certificates(TempDir);

impl Certificates {
    /// Makes them.
    ///
    /// # Errors
    /// Openssl is not installed, or does not know what it is asked for.
    pub fn make() -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("saga-certificates-").tempdir();
        let made = Self(folder.map_err(Error::system("make a temporary folder"))?);
        for authority in ["authority", "other"] {
            openssl(made.0.path(), authority, "/CN=an authority", "basicConstraints=critical,CA:TRUE", &[])?;
        }
        made.sign("broker", "localhost", "DNS:localhost,IP:127.0.0.1")?;
        Ok(made)
    }

    /// The broker's.
    pub fn broker(&self) -> Certificate {
        Certificate { certificate: self.0.path().join("broker.pem"), key: self.0.path().join("broker.key") }
    }

    /// Makes one that the authority signed too, for another host than this machine. It also does for a client.
    ///
    /// # Errors
    /// Those of [`make`](Self::make).
    pub fn of_another_host(&self) -> Result<Certificate, Error> {
        self.sign("another", "another.example", "DNS:another.example")
    }

    /// The authority that signed it.
    pub fn authority(&self) -> PathBuf {
        self.0.path().join("authority.pem")
    }

    /// The authority that did not.
    pub fn other_authority(&self) -> PathBuf {
        self.0.path().join("other.pem")
    }

    fn sign(&self, name: &str, host: &str, names: &str) -> Result<Certificate, Error> {
        let signed =
            ["-CA", "authority.pem", "-CAkey", "authority.key", "-addext", "basicConstraints=critical,CA:FALSE"];
        let (subject, names) = (format!("/CN={host}"), format!("subjectAltName={names}"));
        openssl(self.0.path(), name, &subject, &names, &signed)?;
        let path = |ending: &str| self.0.path().join(format!("{name}.{ending}"));
        Ok(Certificate { certificate: path("pem"), key: path("key") })
    }
}

fn openssl(folder: &Path, name: &str, subject: &str, extension: &str, more: &[&str]) -> Result<(), Error> {
    let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
    let mut command = Command::new("openssl");
    command.current_dir(folder).args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-sha256"]);
    command.args(["-keyout", &key, "-out", &certificate, "-subj", subject, "-addext", extension]).args(more);
    let output = command.output().map_err(Error::system("run `openssl`"))?;
    if output.status.success() {
        return Ok(());
    }
    let answer = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Refused { asked: format!("make the certificate {name}"), answer })
}
