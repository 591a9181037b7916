//! A watchdog: a shell that outlives its owner by a moment, and ends what the owner left behind.
//!
//! It reads from a pipe what to watch. When the owner dies, however it dies, the pipe closes: then the watchdog ends the
//! process groups that it was told of and removes the folder. It needs no more than a POSIX shell.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;

use crate::error::Error;
use crate::signal::Signal;

const SCRIPT: &str = include_str!("watchdog.sh");

/// The owner's end of the pipe.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Child,
    pipe: Mutex<Option<ChildStdin>>,
}

impl Watchdog {
    /// Starts a watchdog that removes `folder` at the end, if there is one.
    pub(crate) fn start(folder: Option<&Path>) -> Result<Self, Error> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(SCRIPT).arg("saga-servers-watchdog").current_dir("/");
        command.args(folder);
        // A group of its own: what ends the owner's group, such as Ctrl-C, leaves the watchdog to do its work.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = command.spawn().map_err(Error::system("run `sh`"))?;
        let pipe = Mutex::new(shell.stdin.take());
        Ok(Self { shell, pipe })
    }

    /// From now on the process group `group` ends with the owner, at first by `signal`.
    pub(crate) fn watch(&self, group: u32, signal: Signal) {
        self.tell(&format!("watch {group} {}", signal.name()));
    }

    /// The process group ended.
    pub(crate) fn forget(&self, group: u32) {
        self.tell(&format!("forget {group}"));
    }

    /// A watchdog that died can be told nothing; then nothing is watched, and everything else works.
    fn tell(&self, line: &str) {
        if let Ok(mut pipe) = self.pipe.lock()
            && let Some(pipe) = pipe.as_mut()
        {
            let _ = writeln!(pipe, "{line}");
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.tell("release");
        if let Ok(mut pipe) = self.pipe.lock() {
            pipe.take();
        }
        let _ = self.shell.wait();
    }
}
