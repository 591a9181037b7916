//! What is done with one saga that is stuck, waits for its next attempt, or has ended.

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use saga_core::engine::{RestartOutcome, SagaAdmin, SagaControl};
use saga_core::store::Status;
use serde_json::Value;

use crate::OpenStore;
use crate::args::{ActionArgs, ControlArgs, one_of, parse_json};
use crate::output::print_done;
use crate::tenant_admin::TenantAdmin;

/// What to try again.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// Another input for the stuck step, as JSON; the history keeps the hashes of both
    #[arg(long, value_name = "JSON", value_parser = parse_json)]
    input: Option<Value>,
}

/// What to go past.
#[derive(Debug, Args)]
pub(crate) struct SkipArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// The output of the skipped step, as JSON, if a later step takes it
    #[arg(long, value_name = "JSON", value_parser = parse_json)]
    output: Option<Value>,
}

/// As what a stuck saga can be ended.
const ENDS: [(&str, Status); 2] = [("completed", Status::Completed), ("compensated", Status::Compensated)];

/// What to end.
#[derive(Debug, Args)]
pub(crate) struct ForceArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// The outcome; effects remain
    #[arg(long = "as", value_name = "END", value_parser = one_of(ENDS))]
    status: Status,
}

/// What to start instead of what.
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    action: ActionArgs,
    /// The step at which the new saga begins; it takes over the outputs of the steps before
    #[arg(long, value_name = "STEP")]
    from: String,
    /// The key of the new saga
    #[arg(long, value_name = "KEY")]
    new_key: String,
}

pub(crate) async fn retry(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &RetryArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let Seen { operator, status, .. } = Seen::read(admin, &args.control).await?;
    let action = &args.control.action;
    let reason = &action.actor.reason;
    if let Some(input) = &args.input {
        operator.retry_with(input, reason).await?;
    } else if status == Status::Stuck {
        operator.retry(reason).await?;
    } else if operator.retry_now(reason).await? == 0 {
        bail!("{} is {status}: nothing of it is stuck or waits for its next attempt", action.key);
    }
    done(out, action, "is tried again by the processes that work on the store")
}

pub(crate) async fn skip(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &SkipArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let Seen { operator, .. } = Seen::read(admin, &args.control).await?;
    let action = &args.control.action;
    match &args.output {
        Some(output) => operator.skip_with(output, &action.actor.reason).await?,
        None => operator.skip(&action.actor.reason).await?,
    }
    done(out, action, "goes on behind what it was stuck at")
}

pub(crate) async fn force(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &ForceArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let Seen { operator, .. } = Seen::read(admin, &args.control).await?;
    let action = &args.control.action;
    if args.status == Status::Completed {
        operator.force_completed(&action.actor.reason).await?;
    } else {
        operator.force_compensated(&action.actor.reason).await?;
    }
    done(out, action, "has ended as it is")
}

pub(crate) async fn restart(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &RestartArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let RestartArgs { action: ActionArgs { key, actor }, from, new_key } = args;
    if admin.query().await?.status(key).await?.is_none() {
        return admin.no_saga(key);
    }
    let said = match admin.actor(actor).await?.control(key).restart(from, new_key, &actor.reason).await? {
        RestartOutcome::Begun => "is started instead",
        RestartOutcome::Already => "was started instead before",
    };
    print_done(out, format_args!("{key}: {new_key} {said}"))?;
    Ok(ExitCode::SUCCESS)
}

/// A saga as it was seen: what can be done with it as long as it stands so.
struct Seen<O: OpenStore> {
    operator: SagaControl<O::Store>,
    status: Status,
}

impl<O: OpenStore> Seen<O> {
    async fn read(admin: &TenantAdmin<'_, O>, args: &ControlArgs) -> anyhow::Result<Self> {
        let ActionArgs { key, actor } = &args.action;
        let sagas: SagaAdmin<O::Store> = admin.actor(actor).await?;
        let Some(seen) = admin.query().await?.status(key).await? else { return admin.no_saga(key) };
        let revision = args.revision.unwrap_or(seen.revision);
        Ok(Self {
            operator: sagas.control(seen.summary.key.as_str()).at_revision(revision),
            status: seen.summary.status,
        })
    }
}

fn done(out: &mut dyn Write, args: &ActionArgs, said: &str) -> anyhow::Result<ExitCode> {
    print_done(out, format_args!("{} {said}", args.key))?;
    Ok(ExitCode::SUCCESS)
}
