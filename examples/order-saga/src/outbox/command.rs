use std::{fmt, process::ExitCode};

use anyhow::bail;
use saga_core::{
    engine::OutboxAdmin,
    store::{MessageId, ParkedKey, Store},
};
use serde_json::{Value, json};

use crate::{
    cli::{OutboxCommand, OutboxListArgs},
    place::Place,
    print::print,
    show::moment,
};

/// Lists what waits to be sent; releases or discards what cannot be.
///
/// # Errors
///
/// A sentence, when the message is not parked or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, an action took effect or not; the same again acts once.
pub async fn outbox(place: &impl Place, command: &OutboxCommand) -> anyhow::Result<ExitCode> {
    match command {
        OutboxCommand::List(args) => list(&OutboxAdmin::new(place.look_at_store().await?), args).await?,
        OutboxCommand::Release(args) => {
            let desk = writing(place).await?;
            let message = parked(&desk, &args.message).await?;
            desk.release(message).await?;
            print(format_args!("{message} is tried again\n"))?;
        }
        OutboxCommand::Discard(args) => {
            let desk = writing(place).await?;
            let message = parked(&desk, &args.message).await?;
            desk.discard(message, &args.reason).await?;
            print(format_args!("{message} is discarded\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(desk: &OutboxAdmin<impl Store>, args: &OutboxListArgs) -> anyhow::Result<()> {
    let (depth, parked) = (desk.depth().await?, desk.parked().await?);
    if args.json {
        let parked: Vec<Value> = parked.iter().map(as_json).collect();
        let oldest_age_ms = depth.oldest_age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let said = json!({ "waiting": depth.rows, "oldest_age_ms": oldest_age_ms, "parked": parked });
        return Ok(print(said.to_string() + "\n")?);
    }
    for key in &parked {
        print(InLine(key))?;
    }
    let oldest = depth.oldest_age.map(|age| format!(", the oldest for {:.3} s", age.as_secs_f64())).unwrap_or_default();
    let (waiting, parked) = (depth.rows, depth.parked);
    Ok(print(format_args!("{waiting} messages wait to be sent{oldest}; {parked} keys are parked\n"))?)
}

/// A parked key on one line.
struct InLine<'a>(&'a ParkedKey);

impl fmt::Display for InLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParkedKey { message, aggregate_type, aggregate_id, attempts, error, since, retry_at, .. } = self.0;
        let next = retry_at.map_or("waits for a person".to_owned(), |at| format!("tried again at {} UTC", moment(at)));
        let since = moment(*since);
        writeln!(
            f,
            "{message}  {aggregate_type} {aggregate_id}  {attempts} attempts since {since} UTC, {next}: {error}"
        )
    }
}

fn as_json(key: &ParkedKey) -> Value {
    json!({
        "message_id": key.message.to_string(),
        "about": key.aggregate_type,
        "key": key.aggregate_id,
        "attempts": key.attempts,
        "error": key.error,
        "since": moment(key.since),
        "retry_at": key.retry_at.map(moment),
    })
}

/// The message of that id, which could not be sent.
async fn parked(desk: &OutboxAdmin<impl Store>, id: &str) -> anyhow::Result<MessageId> {
    let parked = desk.parked().await?.into_iter().map(|key| key.message).find(|message| message.to_string() == id);
    let Some(message) = parked else { bail!("no key is parked for the message {id:?}; see: order-saga outbox list") };
    Ok(message)
}

/// The desk of a store that is there.
async fn writing<P: Place>(place: &P) -> anyhow::Result<OutboxAdmin<P::Store>> {
    place.look_at_store().await?;
    Ok(OutboxAdmin::new(place.open_store().await?))
}
