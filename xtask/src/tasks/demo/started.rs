//! A process of the demo.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use saga_servers::{ProcessGroup, Signal};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::ChildStdout;

use crate::workspace::root;

/// How long a process may take to be ready.
const READY_WAIT: Duration = Duration::from_mins(1);

/// A process that was started, whose standard output stays open.
pub(super) struct Started {
    pub(super) name: String,
    pub(super) process: ProcessGroup,
    out: BufReader<ChildStdout>,
}

impl Started {
    /// Starts a process.
    pub(super) fn begin(name: &str, mut command: Command, errors: Stdio) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut process = ProcessGroup::spawn(command, Signal::Term)?;
        let out = process.take_stdout().context("it has no standard output")?;
        Ok(Self { name: name.to_owned(), process, out: BufReader::new(ChildStdout::from_std(out)?) })
    }

    /// Waits for its first line, which says that it is ready.
    pub(super) async fn ready(&mut self) -> Result<String> {
        let mut line = String::new();
        let said = tokio::time::timeout(READY_WAIT, self.out.read_line(&mut line)).await;
        if !matches!(said, Ok(Ok(1..))) {
            bail!("{} is not ready", self.name);
        }
        Ok(line.trim().to_owned())
    }
}

/// A program that was built.
pub(super) fn program(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| Path::new("target").into(), PathBuf::from);
    root().join(target).join("release").join(name)
}
