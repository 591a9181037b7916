//! The benchmarks of another revision in alternation with those of the working tree: what changed is told apart from what
//! the machine does from one hour to the next.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::compared::Compared;
use crate::phases::{run, shown};
use crate::workspace::{cargo, program, root};

/// Where other revisions lie, each in a folder of its commit's name.
const FOLDER: &str = "target/beside";

/// Builds both, runs each `times` times, and prints the results.
pub(super) fn run_both(revision: &str, times: u32, arguments: &[String]) -> Result<()> {
    let there = Tree::of(revision)?;
    let programs = [there.build()?, built(&root(), &root().join("target"))?];
    let mut compared = Compared::default();
    for time in 0..times {
        // Neither is always the first.
        let turns = if time % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in turns {
            eprintln!("run {} of {times}, {}", time + 1, ["the other revision", "this one"][side]);
            compared.add(side, &lines_of(&programs[side], arguments)?)?;
        }
    }
    print!("{}", compared.table(revision)?);
    Ok(())
}

/// The other revision's files. They are removed when this is dropped; what was built of them stays, for the next time.
struct Tree {
    /// What is built.
    target: PathBuf,
    files: PathBuf,
}

impl Tree {
    fn of(revision: &str) -> Result<Self> {
        let folder = root().join(FOLDER).join(commit_of(revision)?);
        let tree = Self { target: folder.join("target"), files: folder.join("tree") };
        // What an interrupted run left behind.
        tree.remove();
        run(program("git").args(["worktree", "add", "--quiet", "--force", "--detach"]).arg(&tree.files).arg(revision))?;
        Ok(tree)
    }

    fn build(&self) -> Result<PathBuf> {
        built(&self.files, &self.target)
    }

    fn remove(&self) {
        let mut command = program("git");
        command.args(["worktree", "remove", "--force"]).arg(&self.files);
        // There may be none.
        _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The name of the commit that is meant.
fn commit_of(revision: &str) -> Result<String> {
    let commit = format!("{revision}^{{commit}}");
    let output = program("git").args(["rev-parse", "--verify", "--quiet", "--short", &commit]).output()?;
    if !output.status.success() {
        bail!("`{revision}` is not a revision of this repository");
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Builds the benchmarks of a workspace in a folder that no other workspace is built in: what cargo found of the one, it
/// would take for the other's where a file is not newer.
fn built(workspace: &Path, target: &Path) -> Result<PathBuf> {
    let mut command = cargo();
    command.current_dir(workspace).env("CARGO_TARGET_DIR", target);
    run(command.args(["build", "--release", "--package", "saga-bench"]))?;
    Ok(target.join("release/saga-bench"))
}

/// What one run says, in lines of JSON.
fn lines_of(program: &Path, arguments: &[String]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).arg("--json").current_dir(root());
    eprintln!("$ {}", shown(&command));
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("`{}` ended with {}", shown(&command), output.status);
    }
    String::from_utf8(output.stdout).context("a benchmark wrote something that is not text")
}
