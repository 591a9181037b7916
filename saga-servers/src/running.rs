//! A server's process that goes on without its owner, and can be ended later by another process.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::Error;
use crate::process::{ProcessGroup, send};
use crate::signal::Signal;
use crate::wait::until;

const END_PATIENCE: Duration = Duration::from_secs(10);

/// A process by its id, with what its command line has in it: an id alone may belong to another process by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningProcess {
    id: u32,
    command_line_has: String,
    on_end: Signal,
}

impl RunningProcess {
    /// Lets a server's process go on without its owner.
    pub(crate) fn leave(process: &mut ProcessGroup, command_line_has: impl Into<String>) -> Self {
        Self { id: process.id(), command_line_has: command_line_has.into(), on_end: process.keep() }
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    pub fn from_json(value: &Value) -> Option<Self> {
        let id = u32::try_from(value.get("id")?.as_u64()?).ok()?;
        let command_line_has = value.get("command_line_has")?.as_str()?.to_owned();
        Some(Self { id, command_line_has, on_end: Signal::named(value.get("on_end")?.as_str()?)? })
    }

    /// For a file that a later process reads.
    pub fn to_json(&self) -> Value {
        json!({ "id": self.id, "command_line_has": self.command_line_has, "on_end": self.on_end.name() })
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        command_line(self.id).is_some_and(|line| line.contains(&self.command_line_has))
    }

    /// Ends it at once, whatever it does: its data is not used again. One that ended already is left alone.
    ///
    /// # Errors
    /// A signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, it was asked to end, and may not have ended.
    pub async fn end(&self) -> Result<(), Error> {
        for signal in [self.on_end, Signal::Kill] {
            if !self.is_running() {
                return Ok(());
            }
            send(signal, &format!("-{}", self.id))?;
            until(END_PATIENCE, async || Ok::<_, Error>((!self.is_running()).then_some(()))).await?;
        }
        Ok(())
    }
}

fn command_line(id: u32) -> Option<String> {
    if let Ok(bytes) = fs::read(format!("/proc/{id}/cmdline")) {
        return Some(bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect::<Vec<_>>().join(" "));
    }
    let output = Command::new("ps").args(["-o", "args=", "-p", &id.to_string()]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
