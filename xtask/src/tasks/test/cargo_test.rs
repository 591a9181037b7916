//! Calls of `cargo test`.

use std::io::{IsTerminal as _, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use saga_servers::{ProcessGroup, Signal};
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStdout;
use tokio::time::timeout;

use super::compiler::Compiler;
use super::totals::Totals;
use crate::phases::shown;
use crate::workspace::{WITH_SERVERS, cargo};

/// How long what the tests printed last may take to arrive when they have ended.
const LAST_OUTPUT_TIME_MAX: Duration = Duration::from_secs(1);

/// `cargo test` of the whole workspace.
pub(super) fn test_command(compiler: &Compiler, options: &[&str], filter: &[String]) -> Command {
    let mut command = cargo();
    compiler.compiles(&mut command);
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
pub(super) fn build_command(compiler: &Compiler, options: &[&str], filter: &[String]) -> Command {
    test_command(compiler, &[&["--no-run", "--message-format=json-render-diagnostics"], options].concat(), filter)
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

/// Runs tests, writes what they print to `screen` as it comes, and counts them. It fails with their status, and if not one test
/// was run.
pub(super) async fn run_tests(mut command: Command, screen: &mut impl Write) -> Result<Totals> {
    command.stdout(Stdio::piped());
    let name = shown(&command);
    eprintln!("$ {name}");
    let mut child = ProcessGroup::spawn(command, Signal::Term)?;
    let output = child.take_stdout().context("the tests have no standard output")?;
    let mut totals = Totals::default();
    let showing = show(ChildStdout::from_std(output)?, screen, &mut totals);
    let status = show_until_end(&mut child, showing).await?;
    if !status.success() {
        bail!("`{name}` ended with {status}");
    }
    if totals.passed == 0 {
        bail!("not one test was run: `{name}` selects none");
    }
    Ok(totals)
}

async fn show_until_end(child: &mut ProcessGroup, showing: impl Future<Output = Result<()>>) -> Result<ExitStatus> {
    tokio::pin!(showing);
    tokio::select! {
        shown = &mut showing => {
            shown?;
            Ok(child.wait().await?)
        }
        status = child.wait() => {
            // What a test left running keeps the pipe open, so its end is not waited for.
            if let Ok(shown) = timeout(LAST_OUTPUT_TIME_MAX, &mut showing).await {
                shown?;
            }
            Ok(status?)
        }
    }
}

/// Copies the output to `screen`, also a line that is not whole yet, and adds up the results in it.
async fn show(mut output: ChildStdout, screen: &mut impl Write, totals: &mut Totals) -> Result<()> {
    let (mut printed, mut line) = (Vec::<u8>::with_capacity(8 * 1024), Vec::<u8>::new());
    while output.read_buf(&mut printed).await.context("cannot read what the tests print")? > 0 {
        screen.write_all(&printed).and_then(|()| screen.flush()).context("cannot show what the tests print")?;
        for byte in printed.drain(..) {
            if byte == b'\n' {
                totals.add(&String::from_utf8_lossy(&line));
                line.clear();
            } else {
                line.push(byte);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printing(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[tokio::test]
    async fn tests_are_counted_as_they_are_shown() {
        let results = "printf 'running 1 test\ntest result: ok. 1 pas'; sleep 0.1; \
                       printf 'sed; 0 failed\ntest result: ok. 2 passed; 1 ignored\n'";
        let mut shown = Vec::new();
        let totals = run_tests(printing(results), &mut shown).await.unwrap();
        assert_eq!(totals.note(), "3 passed, 0 failed, 1 ignored");
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.starts_with("running 1 test\ntest result: ok. 1 passed; 0 failed\n"), "{shown}");
    }

    #[tokio::test]
    async fn a_filter_that_selects_nothing_fails() {
        let nothing = "echo 'running 0 tests'; echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 8 filtered out'";
        let error = run_tests(printing(nothing), &mut Vec::new()).await.unwrap_err().to_string();
        assert!(error.contains("not one test was run"), "{error}");
    }

    #[tokio::test]
    async fn what_a_test_leaves_running_is_not_waited_for() {
        let left = "echo 'test result: ok. 1 passed'; sleep 15 &";
        let mut shown = Vec::new();
        let totals = timeout(Duration::from_secs(10), run_tests(printing(left), &mut shown)).await.unwrap();
        assert_eq!(totals.unwrap().passed, 1);
    }
}
