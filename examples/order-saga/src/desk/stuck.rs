use std::process::ExitCode;

use anyhow::bail;
use saga_core::{
    engine::{RestartOutcome, SagaAdmin, SagaControl, SagaStatus},
    store::{Status, Store},
};

use super::open::{definitions, desk};
use crate::{
    cli::{DeskArgs, EndArg, ForceArgs, RestartArgs, RetryArgs, SeenArgs, SkipArgs},
    place::Place,
    print::print,
};

/// Tries one order again: what is stuck, or what waits for its next attempt.
///
/// # Errors
///
/// A sentence, when there is no such order, there is nothing to try again, or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, it was done or not; the same with the same revision is done once.
pub async fn retry(place: &impl Place, args: &RetryArgs) -> anyhow::Result<ExitCode> {
    let (desk, status) = seen(place, &args.desk).await?;
    let (operator, reason) = (operator(&desk, &status, &args.seen)?, &args.desk.act.reason);
    if let Some(input) = &args.input {
        operator.retry_with(input, reason).await?;
    } else if status.summary.status == Status::Stuck {
        operator.retry(reason).await?;
    } else if operator.retry_now(reason).await? == 0 {
        bail!("{} is {}: nothing of it is stuck or waits for its next attempt", args.desk.key, status.summary.status);
    }
    say(&args.desk, "is tried again by whoever works on the store")
}

/// Goes past what one order is stuck at.
///
/// # Errors
///
/// A sentence, when there is no such order, it is not stuck, an output is missing, or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, it was done or not; the same with the same revision is done once.
pub async fn skip(place: &impl Place, args: &SkipArgs) -> anyhow::Result<ExitCode> {
    let (desk, status) = seen(place, &args.desk).await?;
    let (operator, reason) = (operator(&desk, &status, &args.seen)?, &args.desk.act.reason);
    match &args.output {
        Some(output) => operator.skip_with(output, reason).await?,
        None => operator.skip(reason).await?,
    }
    say(&args.desk, "goes on behind what it was stuck at")
}

/// Ends one order as it is.
///
/// # Errors
///
/// A sentence, when there is no such order, it is not stuck, or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, it was done or not; the same with the same revision is done once.
pub async fn force(place: &impl Place, args: &ForceArgs) -> anyhow::Result<ExitCode> {
    let (desk, status) = seen(place, &args.desk).await?;
    let (operator, reason) = (operator(&desk, &status, &args.seen)?, &args.desk.act.reason);
    match args.end {
        EndArg::Completed => operator.force_completed(reason).await?,
        EndArg::Compensated => operator.force_compensated(reason).await?,
    }
    say(&args.desk, "has ended as it is")
}

/// Starts an order instead of one that has ended.
///
/// # Errors
///
/// A sentence, when there is no such order, it cannot be taken over, or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, it was started or not; the same again says which.
pub async fn restart(place: &impl Place, args: &RestartArgs) -> anyhow::Result<ExitCode> {
    let (desk, _) = seen(place, &args.desk).await?;
    let said = match desk.restart(&args.desk.key, &args.from, &args.new_key, &args.desk.act.reason).await? {
        RestartOutcome::Begun => "is started instead",
        RestartOutcome::Already => "was started instead before",
    };
    print(format_args!("{}: {} {said}\n", args.desk.key, args.new_key))?;
    Ok(ExitCode::SUCCESS)
}

async fn seen<P: Place>(place: &P, args: &DeskArgs) -> anyhow::Result<(SagaAdmin<P::Store>, SagaStatus)> {
    let (desk, inspector) = (desk(place, &args.act).await?, definitions(place.look_at_store().await?));
    match inspector.describe(&args.key).await? {
        Some(status) => Ok((desk, status)),
        None => bail!("there is no order {} in {}", args.key, place.shown()),
    }
}

fn operator<S: Store>(desk: &SagaAdmin<S>, status: &SagaStatus, seen: &SeenArgs) -> anyhow::Result<SagaControl<S>> {
    Ok(desk.operator(status.summary.key.as_str(), seen.revision.unwrap_or(status.revision))?)
}

fn say(args: &DeskArgs, said: &str) -> anyhow::Result<ExitCode> {
    print(format_args!("{} {said}\n", args.key))?;
    Ok(ExitCode::SUCCESS)
}
