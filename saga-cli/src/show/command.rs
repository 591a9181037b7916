use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::saga::Shown;
use crate::tenant_admin::TenantAdmin;
use crate::{OpenStore, print};

/// By how many columns a sub-saga stands further in than the saga that it is a step of.
const INDENT: usize = 4;

/// What to show.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The saga's key; in the store of a service that hosts a step of it, KEY>STEP
    key: String,
}

/// Prints the steps of one saga, and those of its sub-sagas, of their sub-sagas and so on: each level is indented.
pub(crate) async fn show(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &ShowArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let query = admin.query().await?;
    // The last is shown next, so that each saga stands below the one that it is a step of.
    let mut waiting = vec![(0, args.key.clone())];
    while let Some((level, key)) = waiting.pop() {
        match query.status(&key).await? {
            Some(saga) => {
                let before = if level == 0 { "" } else { "\n" };
                print(out, format_args!("{before}{}", indented(&Shown(&saga).to_string(), level)))?;
                let children = saga.steps.iter().rev().filter_map(|step| step.child.as_ref());
                waiting.extend(children.map(|child| (level + 1, child.key.to_string())));
            }
            None if level == 0 => return admin.no_saga(&key),
            None => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn indented(lines: &str, level: usize) -> String {
    let mut text = String::new();
    for line in lines.lines() {
        let indent = if line.is_empty() { 0 } else { INDENT * level };
        text.extend([&" ".repeat(indent), line, "\n"]);
    }
    text
}
