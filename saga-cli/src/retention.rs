//! Retention: show what is kept for how long and what is due, exempt or purge a saga.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use saga_core::engine::{RetentionAdmin, RetentionDue, RetentionPolicy};
use saga_core::store::{Status, Store, Timestamp};
use serde_json::{Value, json};

use crate::args::{ActionArgs, parse_day};
use crate::output::{print_done, print_row};
use crate::plain::OneLine;
use crate::tenant_admin::TenantAdmin;
use crate::{OpenStore, print};

/// [`RetentionAdmin::due`] counts no more sagas than these.
const COUNTED_MAX: u64 = 50_000;

/// What to do about the retention of sagas.
#[derive(Debug, Subcommand)]
pub(crate) enum RetentionCommand {
    /// Show how long the sagas of each definition are kept, and how many of all tenants are due to be purged
    Show(RetentionShowArgs),
    /// Apply the retention of a definition to sagas of all tenants that ended before it was set, exempted ones included
    Apply(RetentionApplyArgs),
    /// Keep an ended saga until it is unexempted or reopened, or `apply` is run for its definition
    Exempt(ActionArgs),
    /// Let an exempted saga age again
    Unexempt(ActionArgs),
    /// Delete an ended saga with its key and its history; an archive gets it first
    Purge(ActionArgs),
    /// Start the retention of steps that this host did for a service that no longer exists
    CloseHosted(CloseHostedArgs),
}

/// How to show.
#[derive(Debug, Args)]
pub(crate) struct RetentionShowArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Which definition.
#[derive(Debug, Args)]
pub(crate) struct RetentionApplyArgs {
    /// The name of the definition
    saga: String,
}

/// Which steps.
#[derive(Debug, Args)]
pub(crate) struct CloseHostedArgs {
    /// The service that asked for the steps
    #[arg(long, value_name = "NAME")]
    service: String,
    /// Only steps that ended before this day, in UTC
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    before: Timestamp,
}

pub(crate) async fn retention(
    admin: &TenantAdmin<'_, impl OpenStore>,
    command: &RetentionCommand,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    match command {
        RetentionCommand::Show(args) => {
            let retention = admin.read().await?.retention();
            show(&retention, args, out).await?;
        }
        RetentionCommand::Apply(args) => {
            let dated = admin.write().await?.retention().apply(&args.saga).await?;
            print_done(out, format_args!("{dated} ended sagas of {} are kept as its retention says", args.saga))?;
        }
        RetentionCommand::Exempt(args) => {
            act_on(admin, args).await?.exempt(&args.key, &args.actor.reason).await?;
            print_done(out, format_args!("{} is kept for ever", args.key))?;
        }
        RetentionCommand::Unexempt(args) => {
            act_on(admin, args).await?.unexempt(&args.key, &args.actor.reason).await?;
            print_done(out, format_args!("{} is kept as the retention of its definition says", args.key))?;
        }
        RetentionCommand::Purge(args) => {
            act_on(admin, args).await?.purge(&args.key, &args.actor.reason).await?;
            print_done(
                out,
                format_args!(
                    "{} is deleted by the next pass of the maintenance task, unless an open dead letter or an unsent message names it",
                    args.key
                ),
            )?;
        }
        RetentionCommand::CloseHosted(args) => {
            let retention = admin.write().await?.retention();
            let dated = retention.close_hosted(&args.service, args.before).await?;
            print_done(out, format_args!("{dated} steps that were done for {} age now", args.service))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn act_on<O: OpenStore>(
    admin: &TenantAdmin<'_, O>,
    args: &ActionArgs,
) -> anyhow::Result<RetentionAdmin<O::Store>> {
    Ok(admin.actor(&args.actor).await?.retention())
}

async fn show(
    retention: &RetentionAdmin<impl Store>,
    args: &RetentionShowArgs,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let (policies, due) = (retention.policies(), retention.due().await?);
    let counted = Counted(due.iter().map(|due| due.sagas).sum());
    if args.json {
        let policies: Vec<Value> = policies.iter().map(policy_json).collect();
        let said = json!({ "policies": policies, "due": due, "at_least": counted.is_limited() });
        return Ok(print(out, format_args!("{said}\n"))?);
    }
    for policy in &policies {
        let (saga, version, kept) = (&policy.saga, policy.version, in_words(policy));
        if print_row(out, OneLine(format_args!("{saga:<24} version {version:<4} {kept}")))?.is_break() {
            return Ok(());
        }
    }
    for RetentionDue { saga, version, deleted, sagas, bytes, .. } in &due {
        let what = if *deleted { "to be deleted" } else { "to become tombstones" };
        let row = format_args!("{saga:<24} version {version:<4} {sagas} sagas {what}, {bytes} bytes of payloads");
        if print_row(out, OneLine(row))?.is_break() {
            return Ok(());
        }
    }
    Ok(print(out, format_args!("{counted} sagas are due\n"))?)
}

/// How many sagas are due, as far as they were counted.
struct Counted(u64);

impl Counted {
    /// Whether more may be due.
    fn is_limited(&self) -> bool {
        self.0 >= COUNTED_MAX
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at_least = if self.is_limited() { "at least " } else { "" };
        write!(f, "{at_least}{}", self.0)
    }
}

fn in_words(policy: &RetentionPolicy) -> String {
    let Some(retention) = policy.retention else { return "kept for ever, as far as is known here".to_owned() };
    let full = |status| days(retention.full_for(status));
    let key = days(retention.key_for(Status::Completed).max(retention.key_for(Status::Compensated)));
    let (completed, compensated) = (full(Status::Completed), full(Status::Compensated));
    format!("completed {completed}, compensated {compensated}, keys {key}")
}

fn policy_json(policy: &RetentionPolicy) -> Value {
    let of = |status| {
        policy.retention.map(|retention| {
            json!({ "full_s": retention.full_for(status).as_secs(), "key_s": retention.key_for(status).as_secs() })
        })
    };
    json!({
        "saga": policy.saga,
        "version": policy.version,
        "completed": of(Status::Completed),
        "compensated": of(Status::Compensated),
    })
}

fn days(duration: Duration) -> String {
    const DAY_S: u64 = 24 * 3_600;
    let seconds = duration.as_secs();
    if seconds.is_multiple_of(DAY_S) { format!("{} days", seconds / DAY_S) } else { format!("{duration:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_reached_its_limit_says_so() {
        for (counted, said, is_limited) in [(49_999, "49999", false), (50_000, "at least 50000", true)] {
            let counted = Counted(counted);
            assert_eq!((counted.to_string().as_str(), counted.is_limited()), (said, is_limited));
        }
    }
}
