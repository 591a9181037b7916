//! The outbox: list what waits to be sent, release or discard what cannot be.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::{Args, Subcommand};
use saga_core::engine::OutboxAdmin;
use saga_core::store::{MessageId, ParkedKey, Store};
use serde_json::{Value, json};

use crate::output::{print_done, print_row};
use crate::plain::OneLine;
use crate::show::utc;
use crate::tenant_admin::TenantAdmin;
use crate::{OpenStore, print};

/// What to do with messages that wait to be sent.
#[derive(Debug, Subcommand)]
pub(crate) enum OutboxCommand {
    /// Show the number and age of waiting messages of all tenants, and list the parked keys of one
    List(OutboxListArgs),
    /// Retry a parked message now
    Release(OutboxReleaseArgs),
    /// Discard a message, so that the next one of its key can be sent
    Discard(OutboxDiscardArgs),
}

/// How to list.
#[derive(Debug, Args)]
pub(crate) struct OutboxListArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Which key to release.
#[derive(Debug, Args)]
pub(crate) struct OutboxReleaseArgs {
    /// The id of the message, as `list` prints it
    message: String,
}

/// Which message to discard.
#[derive(Debug, Args)]
pub(crate) struct OutboxDiscardArgs {
    /// The id of the message, as `list` prints it
    message: String,
    /// The reason, which is stored with the message, as a dead letter
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(crate) async fn outbox(
    admin: &TenantAdmin<'_, impl OpenStore>,
    command: &OutboxCommand,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    match command {
        OutboxCommand::List(args) => list(&admin.read().await?.outbox(), args, out).await?,
        OutboxCommand::Release(args) => {
            let outbox = admin.write().await?.outbox();
            let message = parked(&outbox, &args.message, &admin.command_line("outbox list")).await?;
            is_done(outbox.release(message).await?, message)?;
            print_done(out, format_args!("{message} is tried again"))?;
        }
        OutboxCommand::Discard(args) => {
            let outbox = admin.write().await?.outbox();
            let message = parked(&outbox, &args.message, &admin.command_line("outbox list")).await?;
            is_done(outbox.discard(message, &args.reason).await?, message)?;
            print_done(out, format_args!("{message} is discarded"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(outbox: &OutboxAdmin<impl Store>, args: &OutboxListArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let (depth, parked) = (outbox.depth().await?, outbox.parked().await?);
    if args.json {
        let parked: Vec<Value> = parked.iter().map(as_json).collect();
        let oldest_age_ms = depth.oldest_age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let said = json!({ "waiting": depth.rows, "oldest_age_ms": oldest_age_ms, "parked": parked });
        return Ok(print(out, format_args!("{said}\n"))?);
    }
    for key in &parked {
        if print_row(out, OneLine(Line(key)))?.is_break() {
            return Ok(());
        }
    }
    let oldest = depth.oldest_age.map(|age| format!(", the oldest for {:.3} s", age.as_secs_f64())).unwrap_or_default();
    let others = depth.parked.saturating_sub(parked.len() as u64);
    let others = if others > 0 { format!(", {others} of them of other tenants") } else { String::new() };
    let (waiting, parked) = (depth.rows, depth.parked);
    Ok(print(out, format_args!("{waiting} messages wait to be sent{oldest}; {parked} keys are parked{others}\n"))?)
}

/// A parked key on one line.
struct Line<'a>(&'a ParkedKey);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParkedKey { message, aggregate_type, aggregate_id, attempts, error, since, retry_at, .. } = self.0;
        let next = retry_at.map_or("waits for a person".to_owned(), |at| format!("tried again at {} UTC", utc(at)));
        let since = utc(*since);
        write!(f, "{message}  {aggregate_type} {aggregate_id}  {attempts} attempts since {since} UTC, {next}: {error}")
    }
}

fn as_json(key: &ParkedKey) -> Value {
    json!({
        "message_id": key.message.to_string(),
        "about": key.aggregate_type,
        "key": key.aggregate_id,
        "attempts": key.attempts,
        "error": key.error,
        "since": utc(key.since),
        "retry_at": key.retry_at.map(utc),
    })
}

/// The parked message with that id.
async fn parked(outbox: &OutboxAdmin<impl Store>, id: &str, list: &str) -> anyhow::Result<MessageId> {
    let parked = outbox.parked().await?.into_iter().map(|key| key.message).find(|message| message.to_string() == id);
    let Some(message) = parked else { bail!("no key is parked for the message {id:?}; see: {list}") };
    Ok(message)
}

/// Says so if the message was sent, released or discarded by another process after it was found.
fn is_done(was_parked: bool, message: MessageId) -> anyhow::Result<()> {
    ensure!(was_parked, "the message {message} is not parked any more; nothing was done");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_not_parked_any_more_is_an_error() {
        let message = MessageId("00000000-0000-7000-8000-000000000001".parse().expect("an id"));
        assert!(is_done(true, message).is_ok());
        let error = is_done(false, message).expect_err("it was not parked").to_string();
        assert_eq!(error, format!("the message {message} is not parked any more; nothing was done"));
    }
}
