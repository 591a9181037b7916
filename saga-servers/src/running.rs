//! A server's process that goes on without its owner, and can be ended later by somebody else.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::Error;
use crate::process::{ProcessGroup, Signal, send};
use crate::wait::until;

const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// A process by its id, with what its command line has in it: an id alone may be somebody else's by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningProcess {
    id: u32,
    command_line_has: String,
}

impl RunningProcess {
    /// Lets a server's process go on without its owner.
    pub(crate) fn leave(process: &mut ProcessGroup, command_line_has: impl Into<String>) -> Self {
        process.keep();
        Self { id: process.id(), command_line_has: command_line_has.into() }
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    pub fn from_json(value: &Value) -> Option<Self> {
        let id = u32::try_from(value.get("id")?.as_u64()?).ok()?;
        Some(Self { id, command_line_has: value.get("command_line_has")?.as_str()?.to_owned() })
    }

    /// For a file that a later process reads.
    pub fn to_json(&self) -> Value {
        json!({ "id": self.id, "command_line_has": self.command_line_has })
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        command_line(self.id).is_some_and(|line| line.contains(&self.command_line_has))
    }

    /// Asks it to end, waits, and kills it if it does not. One that ended already is left alone.
    ///
    /// # Errors
    /// A signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, it was asked to end, and may not have ended.
    pub async fn stop(&self) -> Result<(), Error> {
        for (signal, patience) in [(Signal::Term, STOP_PATIENCE), (Signal::Kill, STOP_PATIENCE)] {
            if !self.is_running() {
                return Ok(());
            }
            // PostgreSQL takes SIGTERM for "when all clients are gone".
            let signal = if signal == Signal::Term && self.is_postgres() { Signal::Interrupt } else { signal };
            send(signal, &format!("-{}", self.id))?;
            until(patience, async || Ok::<_, Error>((!self.is_running()).then_some(()))).await?;
        }
        Ok(())
    }

    fn is_postgres(&self) -> bool {
        command_line(self.id)
            .is_some_and(|line| line.split_whitespace().next().is_some_and(|it| it.ends_with("postgres")))
    }
}

fn command_line(id: u32) -> Option<String> {
    if let Ok(bytes) = fs::read(format!("/proc/{id}/cmdline")) {
        return Some(bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect::<Vec<_>>().join(" "));
    }
    let output = Command::new("ps").args(["-o", "args=", "-p", &id.to_string()]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
