//! The README is enough: its dependencies and its program make a new crate that builds and runs, and every page names the
//! dependencies of the workspace.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const README: &str = include_str!("../../README.md");

/// The pages that say what to depend on.
const PAGES: [(&str, &str); 9] = [
    ("README.md", README),
    ("docs/guide/src/quick-start.md", include_str!("../../docs/guide/src/quick-start.md")),
    ("saga-core/README.md", include_str!("../../saga-core/README.md")),
    ("saga-sqlite/README.md", include_str!("../../saga-sqlite/README.md")),
    ("saga-postgres/README.md", include_str!("../../saga-postgres/README.md")),
    ("saga-amqp/README.md", include_str!("../../saga-amqp/README.md")),
    ("saga-macros/README.md", include_str!("../../saga-macros/README.md")),
    ("saga-testkit/README.md", include_str!("../../saga-testkit/README.md")),
    ("saga-cli/README.md", include_str!("../../saga-cli/README.md")),
];

/// Where the pages assume this workspace, as seen from a new crate.
const WORKSPACE: &str = "../saga/";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The first code block in this language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, after) = page.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("no {language} block"));
    after.split_once("```").unwrap().0
}

/// A crate outside of the workspace, made of the README alone.
struct NewCrate(tempfile::TempDir);

impl NewCrate {
    fn of_the_readme() -> Self {
        let root = root();
        let folder = tempfile::tempdir().unwrap();
        let dependencies = block(README, "toml").replace(WORKSPACE, &format!("{}/", root.display()));
        // The last line keeps cargo from looking for a workspace above the temporary folder.
        let package = "[package]\nname = \"readme-shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
        std::fs::write(folder.path().join("Cargo.toml"), format!("{package}\n{dependencies}")).unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/main.rs"), block(README, "rust")).unwrap();
        // With the workspace's versions, everything was downloaded when this test was built.
        std::fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
        Self(folder)
    }

    /// Runs cargo on the crate. The dependencies stay built in the workspace's target folder.
    fn cargo(&self, task: &str) -> Output {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
        let mut command = Command::new(cargo);
        command.args([task, "--offline", "--quiet", "--package", "readme-shop", "--target-dir"]).arg(target);
        // Neither is used again, and both cost time and disk.
        command.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        command.current_dir(self.0.path()).output().unwrap()
    }
}

impl Drop for NewCrate {
    /// The next run has another folder, and would leave another program behind.
    fn drop(&mut self) {
        self.cargo("clean");
    }
}

#[test]
fn the_program_of_the_readme_runs_in_a_new_crate_and_runs_again() {
    let new_crate = NewCrate::of_the_readme();
    // The second run of the program finds the sagas of the first one, and nothing happens twice.
    for run in ["first", "second"] {
        let ran = new_crate.cargo("run");
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "the {run} run:\n{out}{err}");
        let expected = "order-1: completed\norder-2: compensated, because `charge-card` failed: declined\n";
        assert_eq!(out, expected, "the {run} run:\n{err}");
        assert!(!err.contains("warning"), "the {run} run:\n{err}");
    }
}

#[test]
fn every_page_names_the_dependencies_of_the_workspace() {
    let root = root();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    for (page, text) in PAGES {
        let mut crates = Vec::new();
        for (name, wanted) in block(text, "toml").lines().filter_map(|line| line.split_once(" = ")) {
            let line = manifest.lines().find(|line| line.starts_with(&format!("{name} = ")));
            let line = line.unwrap_or_else(|| panic!("{page}: the workspace does not use {name}"));
            if let Some(path) = setting(wanted, "path") {
                let folder = path.strip_prefix(WORKSPACE).unwrap_or_else(|| panic!("{page}: {path}"));
                assert_eq!(setting(line, "path"), Some(folder), "{page}: {name}");
            } else {
                assert_eq!(version(wanted), version(line.split_once(" = ").unwrap().1), "{page}: {name}");
            }
            crates.push(name);
        }
        assert!(crates.contains(&"saga-core"), "{page}: {crates:?}");
    }
}

/// The text of a setting of a dependency: `path = ".."`.
fn setting<'a>(dependency: &'a str, name: &str) -> Option<&'a str> {
    dependency.split_once(&format!("{name} = \""))?.1.split('"').next()
}

/// `"1.0"`, or the `version` between braces.
fn version(dependency: &str) -> &str {
    setting(dependency, "version").unwrap_or_else(|| dependency.split('"').nth(1).unwrap())
}
