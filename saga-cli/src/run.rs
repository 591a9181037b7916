use std::io::Write;
use std::process::ExitCode;

use crate::action::Action;
use crate::tenant_admin::TenantAdmin;
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
        let admin = &TenantAdmin::new(self, command.tenant.clone());
        match &command.action {
            Action::Show(args) => show::show(admin, args, out).await,
            Action::List(args) => list::list(admin, args, out).await,
            Action::Cancel(args) => control::cancel(admin, args, out).await,
            Action::Pause(args) => control::pause(admin, args, out).await,
            Action::Resume(args) => control::resume(admin, args, out).await,
            Action::Retry(args) => stuck::retry(admin, args, out).await,
            Action::Skip(args) => stuck::skip(admin, args, out).await,
            Action::Force(args) => stuck::force(admin, args, out).await,
            Action::Restart(args) => stuck::restart(admin, args, out).await,
            Action::Bulk(command) => bulk::bulk(admin, command, out).await,
            Action::Audit(args) => audit::audit(admin, args, out).await,
            Action::DeadLetters(command) => dead_letters::dead_letters(admin, command, out).await,
            Action::Outbox(command) => outbox::outbox(admin, command, out).await,
            Action::Retention(command) => retention::retention(admin, command, out).await,
        }
    }
}
