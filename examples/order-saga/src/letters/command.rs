use std::process::ExitCode;

use anyhow::bail;
use saga_core::{
    engine::DeadLetterAdmin,
    store::{DeadLetterFilter, DeadLetterId},
};
use serde_json::json;

use super::letter::{InFull, InLine, as_json};
use crate::{
    cli::{LetterArgs, LettersCommand, LettersListArgs},
    place::Place,
    print::print,
};

/// How many letters are read at a time.
const PAGE: usize = 500;

/// Lists, shows, replays or discards messages that could not be handled.
///
/// # Errors
///
/// A sentence, when there is no such letter, the action does not fit it, or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, an action took effect or not; the same again acts once.
pub async fn letters(place: &impl Place, command: &LettersCommand) -> anyhow::Result<ExitCode> {
    match command {
        LettersCommand::List(args) => list(place, args).await?,
        LettersCommand::Show(args) => show(place, args).await?,
        LettersCommand::Replay(args) => {
            writing(place).await?.replay(DeadLetterId(args.id), &args.reason).await?;
            print(format_args!("{} is handed in again\n", args.id))?;
        }
        LettersCommand::Discard(args) => {
            writing(place).await?.discard(DeadLetterId(args.id), &args.reason).await?;
            print(format_args!("{} is discarded\n", args.id))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(place: &impl Place, args: &LettersListArgs) -> anyhow::Result<()> {
    let desk = DeadLetterAdmin::new(place.look_at_store().await?);
    let mut filter = DeadLetterFilter { state: args.state.into(), limit: PAGE, ..DeadLetterFilter::default() };
    let mut shown = Vec::new();
    loop {
        let letters = desk.list(filter.clone()).await?;
        for letter in &letters {
            if args.json {
                shown.push(as_json(letter));
            } else {
                print(InLine(letter))?;
            }
        }
        filter.after = letters.last().map(|letter| letter.letter.id);
        if letters.len() < PAGE {
            break;
        }
    }
    if args.json {
        print(json!({ "dead_letters": shown }).to_string() + "\n")?;
    }
    Ok(())
}

async fn show(place: &impl Place, args: &LetterArgs) -> anyhow::Result<()> {
    let desk = DeadLetterAdmin::new(place.look_at_store().await?);
    let Some(letter) = desk.show(DeadLetterId(args.id)).await? else {
        bail!("there is no dead letter {} in {}", args.id, place.shown());
    };
    if args.json {
        print(as_json(&letter).to_string() + "\n")?;
    } else {
        print(InFull(&letter))?;
    }
    Ok(())
}

/// The desk of a store that is there: what is handed in again waits for whoever works on it.
async fn writing<P: Place>(place: &P) -> anyhow::Result<DeadLetterAdmin<P::Store>> {
    place.look_at_store().await?;
    Ok(DeadLetterAdmin::new(place.open_store().await?))
}
