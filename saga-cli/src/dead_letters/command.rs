use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use saga_core::store::{DeadLetterFilter, DeadLetterId, DeadLetterState};

use super::dead_letter::{InFull, InLine, as_json};
use crate::output::{print_done, print_row};
use crate::tenant_admin::TenantAdmin;
use crate::{OpenStore, print};

/// How many dead letters are read at a time. Each comes with its content, which may have many megabytes.
const PAGE: usize = 20;

/// What to do with messages that could not be handled.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadLettersCommand {
    /// List dead letters, the oldest first
    List(DeadLetterListArgs),
    /// Show a dead letter with its content and headers
    Show(DeadLetterArgs),
    /// Replay a dead letter as the same message; its effect happens once
    Replay(DeadLetterReplayArgs),
    /// Discard a dead letter
    Discard(DeadLetterDiscardArgs),
}

/// Which dead letters to list.
#[derive(Debug, Args)]
pub(crate) struct DeadLetterListArgs {
    /// Only dead letters in this state
    #[arg(long, value_name = "S", default_value = "open", value_parser = ["open", "replayed", "discarded", "all"])]
    state: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Which dead letter.
#[derive(Debug, Args)]
pub(crate) struct DeadLetterArgs {
    /// Its number, as `list` prints it
    id: i64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Which dead letter to replay.
#[derive(Debug, Args)]
pub(crate) struct DeadLetterReplayArgs {
    /// Its number, as `list` prints it
    id: i64,
    /// The reason, which is stored with the dead letter
    #[arg(long, value_name = "TEXT", default_value = "replayed from the command line")]
    reason: String,
}

/// Which dead letter to discard.
#[derive(Debug, Args)]
pub(crate) struct DeadLetterDiscardArgs {
    /// Its number, as `list` prints it
    id: i64,
    /// The reason, which is stored with the dead letter
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(crate) async fn dead_letters(
    admin: &TenantAdmin<'_, impl OpenStore>,
    command: &DeadLettersCommand,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    match command {
        DeadLettersCommand::List(args) => list(admin, args, out).await?,
        DeadLettersCommand::Show(args) => show(admin, args, out).await?,
        DeadLettersCommand::Replay(args) => {
            admin.write().await?.dead_letters().replay(DeadLetterId(args.id), &args.reason).await?;
            print_done(out, format_args!("{} is handed in again", args.id))?;
        }
        DeadLettersCommand::Discard(args) => {
            admin.write().await?.dead_letters().discard(DeadLetterId(args.id), &args.reason).await?;
            print_done(out, format_args!("{} is discarded", args.id))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &DeadLetterListArgs,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let dead_letters = admin.read().await?.dead_letters();
    let mut filter =
        DeadLetterFilter { state: DeadLetterState::parse(&args.state), limit: PAGE, ..DeadLetterFilter::default() };
    let mut between = "";
    if args.json {
        print(out, "{\"dead_letters\":[")?;
    }
    loop {
        let letters = dead_letters.list(filter.clone()).await?;
        for letter in &letters {
            if args.json {
                print(out, format_args!("{between}{}", as_json(letter)))?;
                between = ",";
            } else if print_row(out, InLine(letter))?.is_break() {
                return Ok(());
            }
        }
        filter.after = letters.last().map(|letter| letter.letter.id);
        if letters.len() < PAGE {
            break;
        }
    }
    if args.json {
        print(out, "]}\n")?;
    }
    Ok(())
}

async fn show(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &DeadLetterArgs,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let dead_letters = admin.read().await?.dead_letters();
    let Some(letter) = dead_letters.show(DeadLetterId(args.id)).await? else {
        bail!("there is no dead letter {} in {}", args.id, admin.place());
    };
    if args.json {
        print(out, format_args!("{}\n", as_json(&letter)))?;
    } else {
        print(out, InFull(&letter))?;
    }
    Ok(())
}
