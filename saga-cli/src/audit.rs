use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use saga_core::engine::AuditRecord;
use saga_core::store::AuditFilter;
use serde_json::json;

use crate::OpenStore;
use crate::output::print_row;
use crate::plain::OneLine;
use crate::show::utc;
use crate::tenant_admin::TenantAdmin;

/// How many entries are read at a time.
const PAGE: usize = 1_000;

/// What of the audit log to list.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// The most lines to print
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Prints the actions of operators, one per line, the latest first.
pub(crate) async fn audit(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &AuditArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let query = admin.query().await?;
    let (mut before, mut left) = (None, args.limit);
    while left > 0 {
        let limit = left.min(PAGE);
        let acts = query.audit_log(AuditFilter { before, limit, ..AuditFilter::default() }).await?;
        for AuditRecord { key, at, entry: act, .. } in &acts {
            let (key, at) = (key.as_str(), utc(*at));
            let printed = if args.json {
                print_row(out, json!({ "at": at, "key": key, "act": act }))?
            } else {
                print_row(out, OneLine(format_args!("{at} UTC {key:<24} {act}")))?
            };
            if printed.is_break() {
                return Ok(ExitCode::SUCCESS);
            }
        }
        before = acts.last().map(|acted| acted.number);
        left = if acts.len() < limit { 0 } else { left - limit };
    }
    Ok(ExitCode::SUCCESS)
}
