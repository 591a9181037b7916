//! The libraries of Java that the worker and the connector consist of.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// Of the more than 400 libraries in the package, those that a worker with a connector for PostgreSQL loads. With fewer of them Java starts in
/// half the time, and none of them is there twice in different versions.
const NAMES: [&str; 28] = [
    "classgraph-4.8.179",
    "connect-api-4.3.0",
    "connect-json-4.3.0",
    "connect-runtime-4.3.0",
    "connect-transforms-4.3.0",
    "debezium-api-3.6.3.Final",
    "debezium-config-3.6.3.Final",
    "debezium-connect-plugins-3.6.3.Final",
    "debezium-connector-common-3.6.3.Final",
    "debezium-connector-postgres-3.6.3.Final",
    "debezium-openlineage-api-3.6.3.Final",
    "debezium-util-3.6.3.Final",
    "jackson-annotations-2.21",
    "jackson-core-2.21.2",
    "jackson-databind-2.21.2",
    "jackson-datatype-jdk8-2.21.2",
    "jackson-datatype-jsr310-2.21.2",
    "jackson-module-blackbird-2.21.2",
    "jakarta.ws.rs-api-3.1.0",
    "kafka-clients-4.3.0",
    "log4j-api-2.26.1",
    "log4j-core-2.26.1",
    "log4j-slf4j2-impl-2.26.1",
    "maven-artifact-3.9.15",
    "postgresql-42.7.13",
    "protobuf-java-3.25.5",
    "sketches-java-0.8.2",
    "slf4j-api-2.0.18",
];

/// The paths of the libraries in a folder.
///
/// # Errors
/// Names those that are not there, and says what to do.
pub(super) fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let paths = NAMES.iter().map(|name| folder.join(format!("{name}.jar")));
    let (there, missing): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_file());
    if missing.is_empty() {
        return Ok(there);
    }
    let names: Vec<_> = missing.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    Err(Error::Refused {
        asked: "find the libraries of Debezium".to_owned(),
        answer: format!(
            "{} has no {}; delete what is installed there, so that it is installed again",
            folder.display(),
            names.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_complete_is_refused_with_what_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in &NAMES[1..] {
            std::fs::write(folder.path().join(format!("{name}.jar")), "").expect("a file");
        }
        let problem = in_folder(folder.path()).expect_err("one is missing").to_string();
        assert!(problem.contains(" has no classgraph-4.8.179.jar; delete "), "{problem}");
        std::fs::write(folder.path().join("classgraph-4.8.179.jar"), "").expect("a file");
        assert_eq!(in_folder(folder.path()).expect("all are there").len(), NAMES.len());
    }
}
