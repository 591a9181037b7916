use std::process::ExitCode;

use anyhow::bail;
use saga_core::{
    engine::{AuditRecord, SagaQuery},
    store::{AuditFilter, SagaFilter},
};
use serde_json::json;

use super::{
    saga::Shown,
    time::{after, moment},
};
use crate::{
    cli::{AuditArgs, ListArgs, ShowArgs},
    desk::definitions,
    place::Place,
    print::print,
};

/// How many sagas are read at a time.
const PAGE: usize = 1_000;

/// Prints what happened to one saga, and to those that are steps of it.
///
/// # Errors
///
/// A sentence, when there is no such saga or the store cannot be read.
///
/// # Cancel safety
///
/// It may be dropped at any time; it only reads.
pub async fn show(place: &impl Place, args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let inspector = inspector(place).await?;
    let Some(saga) = inspector.describe(&args.key).await? else {
        bail!("there is no order {} in {}", args.key, place.shown());
    };
    print(Shown(&saga))?;
    for child in saga.steps.iter().filter_map(|step| step.child.as_ref()) {
        if let Some(child) = inspector.describe(child.key.as_str()).await? {
            print(format_args!("\n{}", Shown(&child)))?;
        }
    }
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
pub async fn list(place: &impl Place, args: &ListArgs) -> anyhow::Result<ExitCode> {
    let inspector = inspector(place).await?;
    let mut filter = SagaFilter { status: args.status.map(Into::into), limit: PAGE, ..SagaFilter::default() };
    loop {
        let sagas = inspector.list(filter.clone()).await?;
        for saga in &sagas {
            let last = saga.ended_at.unwrap_or(saga.advanced_at);
            let (key, status) = (saga.key.as_str(), saga.status.as_str());
            let times = format!("{} UTC {:>11}", moment(saga.started_at), after(saga.started_at, last));
            let waits = saga.waits_for.as_ref().map(|reason| format!("  waits: {reason}")).unwrap_or_default();
            print(format_args!("{key:<24} {status:<12} {times}{waits}\n"))?;
        }
        filter.after = sagas.last().map(|saga| saga.id);
        if sagas.len() < PAGE {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Prints what people did with sagas, one act a line.
///
/// # Errors
///
/// A sentence, when the store cannot be read.
///
/// # Cancel safety
///
/// It may be dropped at any time; it only reads.
pub async fn audit(place: &impl Place, args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let inspector = inspector(place).await?;
    let (mut before, mut left) = (None, args.limit);
    while left > 0 {
        let limit = left.min(PAGE);
        let acts = inspector.audit_log(AuditFilter { before, limit, ..AuditFilter::default() }).await?;
        for AuditRecord { key, at, entry: act, .. } in &acts {
            let (key, at) = (key.as_str(), moment(*at));
            if args.json {
                print(format_args!("{}\n", json!({ "at": at, "key": key, "act": act })))?;
            } else {
                print(format_args!("{at} UTC {key:<24} {act}\n"))?;
            }
        }
        before = acts.last().map(|acted| acted.number);
        left = if acts.len() < limit { 0 } else { left - limit };
    }
    Ok(ExitCode::SUCCESS)
}

/// What can be asked about the sagas of a store, while a program works on it or not.
async fn inspector<P: Place>(place: &P) -> anyhow::Result<SagaQuery<P::Store>> {
    Ok(definitions(place.look_at_store().await?))
}
