//! Where Java is.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::programs::{missing, on_path};

/// Kafka Connect 4 runs on no earlier one.
const VERSION_MIN: u32 = 17;
/// What is loaded by a program that runs Java inside its own process.
const LIBRARY: &str = "lib/server/libjvm.so";

/// The library of a Java virtual machine that is new enough: that of `JAVA_HOME`, or that of the path, or another one that is installed.
pub(crate) fn virtual_machine() -> Result<PathBuf, Error> {
    let of_environment = env::var_os("JAVA_HOME").map(PathBuf::from);
    let of_path = on_path("java").and_then(|java| fs::canonicalize(java).ok()).and_then(|java| home_of(&java));
    let mut others: Vec<PathBuf> =
        fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    others.sort();
    let homes = of_environment.into_iter().chain(of_path).chain(others);
    let new_enough = homes.filter(|home| version(home).is_some_and(|version| version >= VERSION_MIN));
    let mut libraries = new_enough.map(|home| home.join(LIBRARY)).filter(|library| library.is_file());
    libraries.next().ok_or_else(|| missing("Java, 17 or later,", "default-jre-headless"))
}

/// The folder that has the program in `bin`.
fn home_of(java: &Path) -> Option<PathBuf> {
    java.parent()?.parent().map(Path::to_path_buf)
}

/// The major version, which stands in a file of each Java.
fn version(home: &Path) -> Option<u32> {
    major_version(&fs::read_to_string(home.join("release")).ok()?)
}

fn major_version(release: &str) -> Option<u32> {
    let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
    version.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_the_file_of_a_release() {
        assert_eq!(major_version("IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.15\"\n"), Some(17));
        assert_eq!(major_version("JAVA_VERSION=\"21\"\n"), Some(21));
        // Java 8 counted so, and is too old either way.
        assert_eq!(major_version("JAVA_VERSION=\"1.8.0_392\"\n"), Some(1));
        assert_eq!(major_version("IMPLEMENTOR=\"Debian\"\n"), None);
    }
}
