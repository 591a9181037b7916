//! The test programs that cargo built.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::workspace::root;

/// What takes longest, so that it begins first and the end does not wait for one program alone. Most of their time they
/// wait for servers that they kill. A name that is missing here costs time and nothing else.
const LONG: [&str; 14] = [
    "chaos",
    "order_rig",
    "brokers",
    "own_servers",
    "choreography",
    "across_services",
    "debezium",
    "cluster",
    "conformance_tansu",
    "conformance",
    "kills",
    "broker",
    "server",
    "faults",
];

/// How many of their tests these run at once, since most of them wait for servers. Those of `own_servers` wait for one another as well.
const TESTS_AT_ONCE: [(&str, &str); 9] = [
    ("order_rig", "4"),
    ("brokers", "4"),
    ("own_servers", "8"),
    ("choreography", "4"),
    ("across_services", "4"),
    ("cluster", "4"),
    ("broker", "4"),
    ("server", "4"),
    ("stores", "4"),
];

/// What computes or compiles and waits for nothing: it takes what processor time the others leave.
const COMPUTES: [&str; 5] = ["models", "machine_properties", "ui", "pass", "readme"];

/// A program with tests in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TestProgram {
    /// The target's name, such as that of the file under `tests/`.
    name: String,
    source: PathBuf,
    manifest: PathBuf,
    executable: PathBuf,
}

impl TestProgram {
    /// All that stand in cargo's `messages` (`--message-format=json`), the long ones first, the others by their sources.
    pub(super) fn all(messages: &str) -> Result<Vec<Self>> {
        let mut programs = Vec::new();
        for line in messages.lines().filter(|line| line.starts_with('{')) {
            let message: Value = serde_json::from_str(line).context("cargo's message is no JSON")?;
            programs.extend(Self::of(&message));
        }
        programs.sort_by_cached_key(|program| (program.rank(), program.source.clone()));
        Ok(programs)
    }

    /// What a message tells of; nothing, unless it is a program with tests.
    fn of(message: &Value) -> Option<Self> {
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        Some(Self {
            name: message["target"]["name"].as_str()?.to_owned(),
            source: path(&message["target"]["src_path"])?,
            manifest: path(&message["manifest_path"])?,
            executable: path(&message["executable"])?,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it waits for nothing, neither for a server nor for the clock.
    pub(super) fn computes(&self) -> bool {
        COMPUTES.contains(&self.name())
    }

    fn rank(&self) -> usize {
        LONG.iter().position(|name| *name == self.name).unwrap_or(LONG.len())
    }

    /// Its source and its executable, from the workspace's root, which says what to run to have it alone.
    pub(super) fn title(&self) -> String {
        let root = root();
        let shown = |path: &Path| path.strip_prefix(&root).unwrap_or(path).display().to_string();
        format!("{} ({})", shown(&self.source), shown(&self.executable))
    }

    /// Runs it as `cargo test` does: in the folder of its package, which is also what it may ask for when it runs.
    pub(super) fn command(&self) -> Command {
        let folder = self.manifest.parent().unwrap_or(&self.manifest);
        let mut command = Command::new(&self.executable);
        command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder).env("CARGO_MANIFEST_PATH", &self.manifest);
        if let Some((_, tests)) = TESTS_AT_ONCE.iter().find(|(name, _)| *name == self.name) {
            command.env("RUST_TEST_THREADS", tests);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::TestProgram;

    /// A message of cargo's about `target`, whose executable is called as it is.
    fn built(package: &str, target: &str, test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": format!("/w/{package}/Cargo.toml"),
            "target": { "name": target, "src_path": format!("/w/{package}/tests/{target}.rs") },
            "profile": { "test": test },
            "executable": format!("/t/{target}"),
        })
        .to_string()
    }

    #[test]
    fn what_cargo_built_as_a_test_is_run_in_its_package_and_the_long_ones_first() {
        let library = r#"{"reason":"compiler-artifact","profile":{"test":false},"executable":null}"#;
        let messages = [
            r#"{"reason":"build-script-executed"}"#.to_owned(),
            library.to_owned(),
            built("one", "short", true),
            built("two", "order_rig", true),
            built("two", "sim", false),
            "not json, a line of a program".to_owned(),
            built("two", "also", true),
            built("three", "chaos", true),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let programs = TestProgram::all(&messages.join("\n")).unwrap();
        let names: Vec<_> = programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["chaos", "order_rig", "short", "also"]);
        assert!(!programs.iter().any(TestProgram::computes));
        assert_eq!(programs[0].title(), "/w/three/tests/chaos.rs (/t/chaos)");
        let command = programs[0].command();
        assert_eq!(
            (command.get_program().to_str(), command.get_current_dir()),
            (Some("/t/chaos"), Some("/w/three".as_ref()))
        );
    }

    #[test]
    fn a_message_that_cannot_be_read_is_an_error() {
        assert!(TestProgram::all("{\"reason\":").is_err());
    }
}
