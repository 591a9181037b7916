//! Calls of `cargo test`.

use std::io::IsTerminal as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use saga_servers::{ProcessGroup, Signal};
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStdout;

use crate::phases::shown;
use crate::workspace::{WITH_SERVERS, cargo};

/// `cargo test` of the whole workspace.
pub(super) fn test_command(options: &[&str], filter: &[String]) -> Command {
    let mut command = cargo();
    command
        .args(["test", "--workspace", "--no-fail-fast", "--features", WITH_SERVERS])
        .args(options)
        .args(filter)
        .stdin(Stdio::null());
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}

/// `cargo test` that builds only, and says of each thing that it built a line of JSON.
pub(super) fn build_command(options: &[&str], filter: &[String]) -> Command {
    test_command(&[&["--no-run", "--message-format=json-render-diagnostics"], options].concat(), filter)
}

/// What cargo says about each thing that it built.
pub(super) async fn built(mut command: Command) -> Result<String> {
    command.stdout(Stdio::piped());
    let name = shown(&command);
    eprintln!("$ {name}");
    let mut child = ProcessGroup::spawn(command, Signal::Term)?;
    let output = child.take_stdout().context("cargo has no standard output")?;
    let mut messages = String::new();
    let mut output = ChildStdout::from_std(output)?;
    output.read_to_string(&mut messages).await.context("cannot read what cargo built")?;
    let status = child.wait().await?;
    if !status.success() {
        bail!("`{name}` ended with {status}");
    }
    Ok(messages)
}
