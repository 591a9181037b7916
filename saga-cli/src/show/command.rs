use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::saga::Shown;
use crate::tenant_admin::TenantAdmin;
use crate::{OpenStore, print};

/// What to show.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The saga's key; in the store of a service that hosts a step of it, KEY>STEP
    key: String,
}

/// Prints the steps of one saga and of its sub-sagas.
pub(crate) async fn show(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &ShowArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let query = admin.query().await?;
    let Some(saga) = query.status(&args.key).await? else { return admin.no_saga(&args.key) };
    print(out, Shown(&saga))?;
    for child in saga.steps.iter().filter_map(|step| step.child.as_ref()) {
        if let Some(child) = query.status(child.key.as_str()).await? {
            print(out, format_args!("\n{}", Shown(&child)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
