//! Ctrl-C and its kin: a task that is interrupted still ends what it started.

use std::fmt;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use saga_servers::{ProcessGroup, Signal};
use tokio::signal::unix::{SignalKind, signal};

use crate::phases::shown;

/// Runs `task` to its end, or until this process is asked to end; then `task` is dropped, and with it all that it
/// started.
pub(crate) fn run_interruptibly<T>(task: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot make a runtime")?;
    runtime.block_on(async {
        tokio::select! {
            outcome = task => outcome,
            interrupted = interruption() => {
                let interrupted = interrupted.context("cannot wait for signals")?;
                eprintln!("\n{interrupted}: ending what was started");
                Err(interrupted.into())
            }
        }
    })
}

/// Runs one command without input, in a process group that ends with this task, and fails with its status.
pub(crate) async fn run_in_group(mut command: Command) -> Result<()> {
    eprintln!("$ {}", shown(&command));
    let name = shown(&command);
    command.stdin(Stdio::null());
    let status = ProcessGroup::spawn(command, Signal::Term)?.wait().await?;
    if !status.success() {
        bail!("`{name}` ended with {status}");
    }
    Ok(())
}

/// The code that a shell would give for how the task ended.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    error
        .downcast_ref::<Interrupted>()
        .map_or(ExitCode::FAILURE, |interrupted| ExitCode::from(128 + interrupted.number))
}

/// This process was asked to end.
#[derive(Debug, Clone, Copy)]
struct Interrupted {
    name: &'static str,
    number: u8,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "interrupted by {}", self.name)
    }
}

impl std::error::Error for Interrupted {}

async fn interruption() -> std::io::Result<Interrupted> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(tokio::select! {
        _ = interrupt.recv() => Interrupted { name: "SIGINT", number: 2 },
        _ = terminate.recv() => Interrupted { name: "SIGTERM", number: 15 },
        _ = hangup.recv() => Interrupted { name: "SIGHUP", number: 1 },
    })
}
