use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::process::{ChildStderr, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use saga_servers::ProcessGroup;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A device on which every write fails for want of room.
const FULL: &str = "/dev/full";
const LAST_LINES: Duration = Duration::from_secs(5);

/// What the standard error of a replica leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LogState {
    /// Its log.
    #[default]
    Open,
    /// A pipe that is not read any more.
    Closed,
    /// A full disk.
    Full,
}

/// The log of a replica. Its standard error comes through a pipe, which can be closed.
#[derive(Debug)]
pub(super) struct ReplicaLog {
    path: PathBuf,
    state: LogState,
    reading: Option<JoinHandle<()>>,
}

impl ReplicaLog {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path, state: LogState::Open, reading: None }
    }

    /// Processes that are started from now on find it so.
    pub(super) fn set(&mut self, state: LogState) {
        self.state = state;
    }

    /// The process that runs finds its standard error closed, and so does the next one.
    pub(super) async fn close(&mut self) {
        self.state = LogState::Closed;
        if let Some(reading) = self.reading.take() {
            reading.abort();
            // Only when the task is gone is its end of the pipe closed.
            let _ = reading.await;
        }
    }

    /// Says where the process writes to that `command` will start.
    pub(super) fn prepare(&self, command: &mut Command) -> anyhow::Result<()> {
        command.stdout(self.file()?);
        if self.state == LogState::Full {
            let full = OpenOptions::new().write(true).open(FULL).with_context(|| format!("cannot open {FULL}"))?;
            command.stderr(full);
        } else {
            command.stderr(Stdio::piped());
        }
        Ok(())
    }

    /// Takes over what a process that was just started says.
    pub(super) fn attach(&mut self, process: &mut ProcessGroup) -> anyhow::Result<()> {
        let stderr = process.take_stderr();
        // That of the process before, if there was one, ends by itself with what it still has to read.
        self.reading = match (stderr, self.state) {
            (Some(stderr), LogState::Open) => Some(tokio::spawn(copy(stderr, self.file()?))),
            _ => None,
        };
        Ok(())
    }

    /// Waits until the last lines of a process that has ended are written.
    pub(super) async fn finish(&mut self) {
        if let Some(reading) = self.reading.take() {
            let _ = timeout(LAST_LINES, reading).await;
        }
    }

    fn file(&self) -> anyhow::Result<File> {
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        file.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

async fn copy(stderr: ChildStderr, log: File) {
    if let Ok(mut stderr) = tokio::process::ChildStderr::from_std(stderr) {
        // A log that cannot be written stops nothing.
        let _ = tokio::io::copy(&mut stderr, &mut tokio::fs::File::from_std(log)).await;
    }
}

#[cfg(test)]
mod tests {
    use saga_servers::Signal;
    use tokio::time::sleep;

    use super::*;

    /// Says `before`, and when there is a file `go`, how it fared with saying more.
    const TALKER: &str = r#"echo before >&2; until [ -e "$1/go" ]; do sleep 0.05; done
        trap '' PIPE; if echo behind >&2; then echo said; else echo refused; fi > "$1/outcome""#;

    async fn outcome(state: LogState) -> (String, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("it.log");
        let mut log = ReplicaLog::at(path.clone());
        log.set(if state == LogState::Full { state } else { LogState::Open });
        let mut command = Command::new("sh");
        command.args(["-c", TALKER, "talker"]).arg(folder.path());
        log.prepare(&mut command).expect("it can be prepared");
        let mut process = ProcessGroup::spawn(command, Signal::Kill).expect("it runs");
        log.attach(&mut process).expect("it is read");
        while state != LogState::Full && !std::fs::read_to_string(&path).expect("a log").contains("before") {
            sleep(Duration::from_millis(10)).await;
        }
        if state == LogState::Closed {
            log.close().await;
        }
        std::fs::write(folder.path().join("go"), "").expect("a file");
        process.wait().await.expect("it ends");
        log.finish().await;
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a file").trim().to_owned();
        (read("outcome"), read("it.log"))
    }

    #[tokio::test]
    async fn a_log_that_is_open_is_written_and_one_that_is_closed_or_full_is_not() {
        assert_eq!(outcome(LogState::Open).await, ("said".to_owned(), "before\nbehind".to_owned()));
        assert_eq!(outcome(LogState::Closed).await, ("refused".to_owned(), "before".to_owned()));
        assert_eq!(outcome(LogState::Full).await, ("refused".to_owned(), String::new()));
    }
}
