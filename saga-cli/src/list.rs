use std::fmt;
use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::Args;
use saga_core::engine::{SagaQuery, SagaSummary};
use saga_core::store::{Failing, SagaFilter, Status, Store};

use crate::OpenStore;
use crate::args::parse_status;
use crate::output::print_row;
use crate::plain::OneLine;
use crate::show::{after, utc};
use crate::tenant_admin::TenantAdmin;

/// How many sagas are read at a time.
const PAGE: usize = 1_000;

/// What to list.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only sagas with this status
    #[arg(long, value_name = "S", value_parser = parse_status())]
    status: Option<Status>,
    /// Only sagas with a step that has failed ten times, or for ten minutes, each with its error
    #[arg(long)]
    failing: bool,
}

/// Prints the sagas, one per line.
pub(crate) async fn list(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &ListArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let query = admin.query().await?;
    let failing = args.failing.then_some(Failing::DEFAULT);
    let mut filter = SagaFilter { status: args.status, failing, limit: PAGE, ..SagaFilter::default() };
    loop {
        let sagas = query.list(filter.clone()).await?;
        for saga in &sagas {
            let mut printed = print_row(out, OneLine(InLine(saga)))?;
            if args.failing && printed.is_continue() {
                printed = list_failing_steps(&query, saga.key.as_str(), out).await?;
            }
            if printed.is_break() {
                return Ok(ExitCode::SUCCESS);
            }
        }
        filter.after = sagas.last().map(|saga| saga.id);
        if sagas.len() < PAGE {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// A saga on one line.
struct InLine<'a>(&'a SagaSummary);

impl fmt::Display for InLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let saga = self.0;
        let (key, status, start) = (saga.key.as_str(), saga.status.as_str(), saga.started_at);
        let last = after(start, saga.ended_at.unwrap_or(saga.advanced_at));
        write!(f, "{key:<24} {status:<12} {} UTC {last:>11}", utc(start))?;
        saga.waits_for.as_ref().map_or(Ok(()), |reason| write!(f, "  waits: {reason}"))
    }
}

async fn list_failing_steps(
    query: &SagaQuery<impl Store>,
    key: &str,
    out: &mut dyn Write,
) -> anyhow::Result<ControlFlow<()>> {
    let Some(status) = query.status(key).await? else { return Ok(ControlFlow::Continue(())) };
    for step in status.steps.iter().filter(|step| step.failing) {
        let (name, attempts) = (&step.step, step.attempts);
        let error = step.error.as_deref().unwrap_or_default();
        let printed = print_row(out, OneLine(format_args!("  {name:<22} {attempts} attempts: {error}")))?;
        if printed.is_break() {
            return Ok(printed);
        }
    }
    Ok(ControlFlow::Continue(()))
}
