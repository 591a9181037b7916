use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use saga_core::store::{SagaFilter, Status};

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
}

/// Prints the sagas, one per line.
pub(crate) async fn list(
    admin: &Admin<impl OpenStore>,
    args: &ListArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let query = admin.query().await?;
    let mut filter = SagaFilter { status: args.status, limit: PAGE, ..SagaFilter::default() };
    loop {
        let sagas = query.list(filter.clone()).await?;
        for saga in &sagas {
            let last = saga.ended_at.unwrap_or(saga.advanced_at);
            let (key, status) = (saga.key.as_str(), saga.status.as_str());
            let times = format!("{} UTC {:>11}", utc(saga.started_at), after(saga.started_at, last));
            let waits = saga.waits_for.as_ref().map(|reason| format!("  waits: {reason}")).unwrap_or_default();
            print(out, format_args!("{key:<24} {status:<12} {times}{waits}\n"))?;
        }
        filter.after = sagas.last().map(|saga| saga.id);
        if sagas.len() < PAGE {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
