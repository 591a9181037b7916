//! Cancel, pause and resume one saga.

use std::io::Write;
use std::process::ExitCode;

use saga_core::engine::{ControlOutcome, RuntimeError};
use saga_core::store::Status;

use crate::OpenStore;
use crate::args::ActionArgs;
use crate::output::print_done;
use crate::tenant_admin::TenantAdmin;

/// The saga had ended before, so that nothing was done.
const ENDED: u8 = 3;

pub(crate) async fn cancel(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &ActionArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let sagas = admin.actor(&args.actor).await?;
    let done = sagas.control(&args.key).cancel(&args.actor.reason).await.map(|cancellation| match cancellation {
        ControlOutcome::Applied => {
            Done::now("is cancelled; the processes that work on the store undo what was done of it".to_owned())
        }
        ControlOutcome::Already => Done::now("is being undone already".to_owned()),
        ControlOutcome::Ended(status) => Done::ended(status),
    });
    report(admin, args, done, out)
}

pub(crate) async fn pause(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &ActionArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let sagas = admin.actor(&args.actor).await?;
    let done = sagas.control(&args.key).pause(&args.actor.reason).await.map(|pausing| match pausing {
        ControlOutcome::Applied => {
            Done::now(format!("is paused: nothing new of it begins before `{}`", admin.command_line("resume")))
        }
        ControlOutcome::Already => Done::now("is paused already".to_owned()),
        ControlOutcome::Ended(status) => Done::ended(status),
    });
    report(admin, args, done, out)
}

pub(crate) async fn resume(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &ActionArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let sagas = admin.actor(&args.actor).await?;
    let done = sagas.control(&args.key).resume(&args.actor.reason).await.map(|resumption| match resumption {
        ControlOutcome::Applied => Done::now("goes on; the processes that work on the store do what waited".to_owned()),
        ControlOutcome::Already => Done::now("is not paused".to_owned()),
        ControlOutcome::Ended(status) => Done::ended(status),
    });
    report(admin, args, done, out)
}

/// The result of the action: the exit code, and what is printed about the saga.
struct Done(ExitCode, String);

impl Done {
    fn now(said: String) -> Self {
        Self(ExitCode::SUCCESS, said)
    }

    /// The exit code tells a script that its action was not done.
    fn ended(status: Status) -> Self {
        let said = if status == Status::Completed { "is completed already" } else { "is undone already" };
        Self(ExitCode::from(ENDED), said.to_owned())
    }
}

fn report(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &ActionArgs,
    done: Result<Done, RuntimeError>,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    match done {
        Ok(Done(code, said)) => {
            print_done(out, format_args!("{} {said}", args.key))?;
            Ok(code)
        }
        Err(RuntimeError::NoSaga(_)) => admin.no_saga(&args.key),
        Err(error) => Err(error.into()),
    }
}
