use std::process::ExitCode;

use anyhow::bail;
use saga_core::{
    engine::{CancelOutcome, PauseOutcome, ResumeOutcome, RuntimeError},
    store::Status,
};

use super::open::desk;
use crate::{cli::DeskArgs, place::Place, print::print};

/// It had ended before, so that nothing was done.
const ENDED: u8 = 3;

/// Cancels one order: what was done of it is undone by whoever works on the store.
///
/// # Errors
///
/// A sentence, when there is no such order, it can only go forward, or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, the order was cancelled or not; the same again says which.
pub async fn cancel(place: &impl Place, args: &DeskArgs) -> anyhow::Result<ExitCode> {
    let desk = desk(place, &args.act).await?;
    let said = desk.cancel(&args.key, &args.act.reason).await.map(|cancellation| match cancellation {
        CancelOutcome::Begun => {
            (ExitCode::SUCCESS, "is cancelled; whoever works on the store undoes what was done of it")
        }
        CancelOutcome::UnderWay => (ExitCode::SUCCESS, "is being undone already"),
        CancelOutcome::Ended(status) => ended(status),
    });
    say(place, args, said)
}

/// Pauses one order: nothing new of it begins.
///
/// # Errors
///
/// A sentence, when there is no such order, or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, the order was paused or not; the same again says which.
pub async fn pause(place: &impl Place, args: &DeskArgs) -> anyhow::Result<ExitCode> {
    let desk = desk(place, &args.act).await?;
    let said = desk.pause(&args.key, &args.act.reason).await.map(|pausing| match pausing {
        PauseOutcome::Paused => (ExitCode::SUCCESS, "is paused: nothing new of it begins before `order-saga resume`"),
        PauseOutcome::Already => (ExitCode::SUCCESS, "is paused already"),
        PauseOutcome::Ended(status) => ended(status),
    });
    say(place, args, said)
}

/// Lets one order go on that was paused.
///
/// # Errors
///
/// A sentence, when there is no such order, or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, the order was resumed or not; the same again says which.
pub async fn resume(place: &impl Place, args: &DeskArgs) -> anyhow::Result<ExitCode> {
    let desk = desk(place, &args.act).await?;
    let said = desk.resume(&args.key, &args.act.reason).await.map(|resumption| match resumption {
        ResumeOutcome::Resumed => (ExitCode::SUCCESS, "goes on; whoever works on the store does what waited"),
        ResumeOutcome::NotPaused(status) if status.is_ended() => ended(status),
        ResumeOutcome::NotPaused(_) => (ExitCode::SUCCESS, "is not paused"),
    });
    say(place, args, said)
}

/// A script that asks for it must not take this for what it asked for.
fn ended(status: Status) -> (ExitCode, &'static str) {
    let said = if status == Status::Completed { "is completed already" } else { "is undone already" };
    (ExitCode::from(ENDED), said)
}

fn say(place: &impl Place, args: &DeskArgs, said: Result<(ExitCode, &str), RuntimeError>) -> anyhow::Result<ExitCode> {
    let key = &args.key;
    match said {
        Ok((code, said)) => {
            print(format_args!("{key} {said}\n"))?;
            Ok(code)
        }
        Err(RuntimeError::NoSaga(_)) => bail!("there is no order {key} in {}", place.shown()),
        Err(error) => Err(error.into()),
    }
}
