use std::process::ExitCode;

use anyhow::bail;
use saga_core::{
    key::{Key, Tenant},
    store::{SagaFilter, Sagas},
};

use super::{
    saga::Shown,
    time::{after, moment},
};
use crate::{
    cli::{ListArgs, ShowArgs},
    place::Place,
    print::print,
};

/// How many sagas are read at a time.
const PAGE: usize = 1_000;

/// Prints what happened to one saga.
///
/// # Errors
///
/// A sentence, when there is no such saga or the store cannot be read.
///
/// # Cancel safety
///
/// It may be dropped at any time; it only reads.
pub async fn show(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let place = Place::parse(&args.store.store)?;
    let store = place.look_at_store().await?;
    let Some(saga) = store.saga_with_steps(&Tenant::default(), &Key::new(&args.key)?).await? else {
        bail!("there is no order {} in {}", args.key, place.shown());
    };
    print(Shown(&saga))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the sagas, one a line.
///
/// # Errors
///
/// A sentence, when the store cannot be read.
///
/// # Cancel safety
///
/// It may be dropped at any time; it only reads.
pub async fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let store = Place::parse(&args.store.store)?.look_at_store().await?;
    let mut filter = SagaFilter { status: args.status.map(Into::into), limit: PAGE, ..SagaFilter::default() };
    loop {
        let sagas = store.list(&filter).await?;
        for saga in &sagas {
            let last = saga.ended_at.unwrap_or(saga.advanced_at);
            let (key, status) = (saga.key.as_str(), saga.status.as_str());
            let times = format!("{} UTC {:>11}", moment(saga.started_at), after(saga.started_at, last));
            print(format_args!("{key:<24} {status:<12} {times}\n"))?;
        }
        filter.after = sagas.last().map(|saga| saga.id);
        if sagas.len() < PAGE {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
