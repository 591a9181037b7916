//! The process of one server: how it starts, when it is ready, and how it ends.

use std::pin::Pin;
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::folder::Folder;
use crate::ports::says_port_is_taken;
use crate::process::ProcessGroup;
use crate::signal::Signal;
use crate::wait::LOOK_EVERY;

/// How long a server that is asked to end may take before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// Whether a server is ready.
pub(crate) type IsReady = Pin<Box<dyn Future<Output = bool> + Send>>;

/// What tells one kind of server from another.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) server: &'static str,
    /// The file that it logs to.
    pub(crate) log: &'static str,
    pub(crate) start_patience: Duration,
}

/// The process of a server, while it runs, and its folder.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    kind: &'static Kind,
    /// Dropped before the folder.
    process: Option<ProcessGroup>,
    pub(crate) folder: Folder,
}

impl ServerProcess {
    pub(crate) const fn new(kind: &'static Kind, folder: Folder) -> Self {
        Self { kind, process: None, folder }
    }

    /// Runs the server, and waits until `look` says that it is ready; false if its port was taken.
    pub(crate) async fn run(
        &mut self,
        call: Command,
        mut look: impl FnMut(&Folder) -> IsReady + Send,
    ) -> Result<bool, Error> {
        let Kind { log, start_patience, .. } = *self.kind;
        let mut process = self.folder.run(call, log, Signal::Kill)?;
        // No async closure: the future of one could not be sent to another thread from everywhere.
        let looking = async {
            while !look(&self.folder).await {
                if process.ended()?.is_some() {
                    return Ok::<_, Error>(false);
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            // What answers may be another server, which has the port.
            Ok(process.ended()?.is_none())
        };
        let is_ready = tokio::time::timeout(start_patience, looking).await.ok().transpose()?;
        self.process = Some(process);
        match is_ready {
            Some(true) => Ok(true),
            Some(false) if says_port_is_taken(&self.log()?) => Ok(false),
            Some(false) => Err(self.not_started("it ended")),
            None => Err(self.not_started(&format!("it was not ready within {} s", start_patience.as_secs()))),
        }
    }

    /// Sends a signal to the server, if it runs.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        self.process.as_mut().map_or(Ok(()), |process| process.signal(signal))
    }

    pub(crate) async fn kill(&mut self) -> Result<(), Error> {
        match self.process.take() {
            Some(mut process) => process.kill().await,
            None => Ok(()),
        }
    }

    /// Ends the server in an orderly way.
    pub(crate) async fn stop(&mut self) -> Result<(), Error> {
        match self.process.take() {
            Some(mut process) => process.stop(Signal::Term, STOP_PATIENCE).await,
            None => Ok(()),
        }
    }

    /// The process, which goes on without this value.
    pub(crate) const fn take(&mut self) -> Option<ProcessGroup> {
        self.process.take()
    }

    /// All that the server logged, also before it was killed and restarted.
    pub(crate) fn log(&self) -> Result<String, Error> {
        self.folder.whole_log(self.kind.log)
    }

    pub(crate) fn not_started(&self, reason: &str) -> Error {
        let Kind { server, log, .. } = *self.kind;
        Error::Start { server, reason: reason.to_owned(), log: self.folder.log_end(log) }
    }
}
