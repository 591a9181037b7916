use std::io::Write;
use std::process::ExitCode;

use crate::{Admin, Command, OpenStore, audit, bulk, control, dead_letters, list, outbox, retention, show, stuck};

impl<O: OpenStore> Admin<O> {
    /// Runs one command, and prints its result to `out`. The progress of a bulk run goes to standard error.
    ///
    /// The exit code is 0 on success, 1 if a bulk run did not act on all sagas, and 3 if the saga had ended before it could be
    /// cancelled, paused or resumed.
    ///
    /// # Errors
    ///
    /// A sentence that says why the command could not be carried out.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the action took effect or not. Repeating the action acts once.
    pub async fn run(&self, command: &Command, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
        match command {
            Command::Show(args) => show::show(self, args, out).await,
            Command::List(args) => list::list(self, args, out).await,
            Command::Cancel(args) => control::cancel(self, args, out).await,
            Command::Pause(args) => control::pause(self, args, out).await,
            Command::Resume(args) => control::resume(self, args, out).await,
            Command::Retry(args) => stuck::retry(self, args, out).await,
            Command::Skip(args) => stuck::skip(self, args, out).await,
            Command::Force(args) => stuck::force(self, args, out).await,
            Command::Restart(args) => stuck::restart(self, args, out).await,
            Command::Bulk(command) => bulk::bulk(self, command, out).await,
            Command::Audit(args) => audit::audit(self, args, out).await,
            Command::DeadLetters(command) => dead_letters::dead_letters(self, command, out).await,
            Command::Outbox(command) => outbox::outbox(self, command, out).await,
            Command::Retention(command) => retention::retention(self, command, out).await,
        }
    }
}
