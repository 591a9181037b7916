use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use saga_core::engine::SagaQuery;
use saga_core::store::{Failing, SagaFilter, Status, Store};

use crate::args::parse_status;
use crate::show::{after, utc};
use crate::{Admin, OpenStore, print};

/// How many sagas are read at a time.
const PAGE: usize = 1_000;

/// What to list.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only sagas with this status
    #[arg(long, value_name = "S", value_parser = parse_status())]
    status: Option<Status>,
    /// Only sagas with a step that has failed ten times, or for ten minutes, each with its error
    #[arg(long)]
    failing: bool,
}

/// Prints the sagas, one per line.
pub(crate) async fn list(
    admin: &Admin<impl OpenStore>,
    args: &ListArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let query = admin.query().await?;
    let failing = args.failing.then_some(Failing::DEFAULT);
    let mut filter = SagaFilter { status: args.status, failing, limit: PAGE, ..SagaFilter::default() };
    loop {
        let sagas = query.list(filter.clone()).await?;
        for saga in &sagas {
            let last = saga.ended_at.unwrap_or(saga.advanced_at);
            let (key, status) = (saga.key.as_str(), saga.status.as_str());
            let times = format!("{} UTC {:>11}", utc(saga.started_at), after(saga.started_at, last));
            let waits = saga.waits_for.as_ref().map(|reason| format!("  waits: {reason}")).unwrap_or_default();
            print(out, format_args!("{key:<24} {status:<12} {times}{waits}\n"))?;
            if args.failing {
                list_failing_steps(&query, key, out).await?;
            }
        }
        filter.after = sagas.last().map(|saga| saga.id);
        if sagas.len() < PAGE {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

async fn list_failing_steps(query: &SagaQuery<impl Store>, key: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(status) = query.status(key).await? else { return Ok(()) };
    for step in status.steps.iter().filter(|step| step.failing) {
        let (name, attempts) = (&step.step, step.attempts);
        let error = step.error.as_deref().unwrap_or_default();
        print(out, format_args!("  {name:<22} {attempts} attempts: {error}\n"))?;
    }
    Ok(())
}
