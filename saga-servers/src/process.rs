//! A child process together with everything that it starts.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::signal::Signal;
use crate::threads::wait_until_stopped;
use crate::wait::{LOOK_EVERY, until};
use crate::watchdog::Watchdog;

/// How long a process that is asked to end may take before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// A child process in a process group of its own, with all that it starts there.
///
/// What a terminal sends to the foreground, such as Ctrl-C, does not reach it. It ends when this value is dropped, and
/// when this process dies, by whatever signal.
#[derive(Debug)]
pub struct ProcessGroup {
    child: Child,
    on_end: Signal,
    ended: Option<ExitStatus>,
    watchdog: Option<Arc<Watchdog>>,
    /// Whether it goes on when this value is dropped.
    kept: bool,
}

impl ProcessGroup {
    /// Starts `command`; at the end of its owner it gets `on_end`, and a moment later SIGKILL.
    ///
    /// # Errors
    /// The program cannot be run.
    pub fn spawn(command: Command, on_end: Signal) -> Result<Self, Error> {
        Self::spawn_watched(command, on_end, Some(Arc::new(Watchdog::start(None)?)))
    }

    /// As [`spawn`](Self::spawn), with a watchdog that is there already, or with none: then it outlives this process.
    pub(crate) fn spawn_watched(
        mut command: Command,
        on_end: Signal,
        watchdog: Option<Arc<Watchdog>>,
    ) -> Result<Self, Error> {
        let shown = command.get_program().to_string_lossy().into_owned();
        let child = command.process_group(0).spawn().map_err(Error::system(format!("run `{shown}`")))?;
        if let Some(watchdog) = &watchdog {
            watchdog.watch(child.id(), on_end);
        }
        Ok(Self { child, on_end, ended: None, watchdog, kept: false })
    }

    /// The process id of the first process, which is the id of the group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The standard output, if `command` said that it is piped, once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The standard error, if `command` said that it is piped, once. Dropped, it is closed while the process runs.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// How the first process ended, if it did.
    ///
    /// # Errors
    /// The operating system does not say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.ended.is_none() {
            let id = self.id();
            self.ended = self.child.try_wait().map_err(Error::system(format!("wait for process {id}")))?;
            if let (Some(_), Some(watchdog)) = (self.ended, &self.watchdog) {
                watchdog.forget(id);
            }
        }
        Ok(self.ended)
    }

    /// Waits until the first process ended.
    ///
    /// # Errors
    /// The operating system does not say how it ended.
    ///
    /// # Cancel safety
    /// Dropped, nothing changes: it can be waited for again.
    pub async fn wait(&mut self) -> Result<ExitStatus, Error> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Sends a signal to all processes of the group; to one that ended already it does nothing. [`Signal::Stop`] is waited for: when
    /// this returns, no thread of the first process runs.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        if self.ended()?.is_some() {
            return Ok(());
        }
        send(signal, &format!("-{}", self.id()))?;
        if signal == Signal::Stop {
            wait_until_stopped(self.id());
        }
        Ok(())
    }

    /// SIGKILL to all processes of the group, and waits until the first of them is gone.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the signal was sent all the same.
    pub async fn kill(&mut self) -> Result<(), Error> {
        self.signal(Signal::Kill)?;
        self.wait().await.map(drop)
    }

    /// Sends `signal` to the first process, which ends the others in its own order, and waits for `patience` at most;
    /// then SIGKILL to all.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the signal was sent all the same.
    pub async fn stop(&mut self, signal: Signal, patience: Duration) -> Result<(), Error> {
        if self.ended()?.is_none() {
            send(signal, &self.id().to_string())?;
        }
        if until(patience, async || self.ended()).await?.is_none() {
            self.kill().await?;
        }
        Ok(())
    }

    /// Lets it go on without an owner, and returns the signal that ends it.
    pub(crate) fn keep(&mut self) -> Signal {
        self.kept = true;
        if let Some(watchdog) = &self.watchdog {
            watchdog.forget(self.child.id());
        }
        self.on_end
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.kept || !matches!(self.ended(), Ok(None)) {
            return;
        }
        let _ = self.signal(self.on_end);
        let mut patience = END_PATIENCE;
        while matches!(self.ended(), Ok(None)) && !patience.is_zero() {
            std::thread::sleep(LOOK_EVERY);
            patience = patience.saturating_sub(LOOK_EVERY);
        }
        // The first process may be gone and others of its group still there.
        let _ = send(Signal::Kill, &format!("-{}", self.id()));
        if self.ended.is_none() {
            let _ = self.child.wait();
            if let Some(watchdog) = &self.watchdog {
                watchdog.forget(self.child.id());
            }
        }
    }
}

/// Sends a signal to a process, or to a group if there is a minus before it. One that is not there is no error.
pub(crate) fn send(signal: Signal, process: &str) -> Result<(), Error> {
    // The shell's own `kill`: the program of that name is not on every machine.
    let mut command = Command::new("sh");
    command.args(["-c", "kill -s \"$1\" -- \"$2\"", "kill", signal.name(), process]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map(drop).map_err(Error::system(format!("send SIG{} to process {process}", signal.name())))
}
