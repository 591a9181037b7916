//! Act on many sagas: a plan is written and looked at first, then it is carried out.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use saga_core::engine::{BatchAction, BatchFilter, BatchPlan, BatchResult, BatchSummary, PlannedAction, SagaQuery};
use saga_core::store::{SagaFilter, Status, Store, Timestamp};

use crate::args::{ActorArgs, one_of, parse_duration, parse_status};
use crate::output::{print_done, print_row};
use crate::plain::OneLine;
use crate::plan_file::PlanFile;
use crate::tenant_admin::TenantAdmin;
use crate::{OpenStore, print, print_remark};

/// How many sagas are read at a time.
const PAGE: usize = 1_000;

/// Something of the plan was not done.
const INCOMPLETE: u8 = 1;

/// What to do with many sagas.
#[derive(Debug, Subcommand)]
pub(crate) enum BulkCommand {
    /// Write a plan: the sagas and the action; nothing is changed
    Plan(BulkPlanArgs),
    /// Execute a plan: each saga is acted on only if it has not moved since
    Run(BulkRunArgs),
}

/// What would be done with which sagas.
#[derive(Debug, Args)]
pub(crate) struct BulkPlanArgs {
    /// The action
    #[arg(value_parser = one_of(ACTIONS))]
    action: BatchAction,
    /// Only sagas with this status
    #[arg(long, value_name = "S", value_parser = parse_status())]
    status: Option<Status>,
    /// Only sagas of this definition
    #[arg(long, value_name = "NAME")]
    definition: Option<String>,
    /// Only sagas that are stuck at this step, or compensate because of it
    #[arg(long, value_name = "STEP")]
    failed_step: Option<String>,
    /// Only sagas that are stuck or compensate for a reason that contains this text
    #[arg(long, value_name = "TEXT")]
    reason_has: Option<String>,
    /// Only sagas that have not moved for at least this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    idle_for: Option<Duration>,
    /// The most sagas in the plan
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// The file of the plan; an existing file is not overwritten
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl BulkPlanArgs {
    fn filter(&self) -> BatchFilter {
        BatchFilter {
            status: self.status,
            definition: self.definition.clone(),
            failed_step: self.failed_step.clone(),
            reason: self.reason_has.clone(),
            // With it, the engine asks a store that it may write for the time: `plan` looks at it itself.
            idle_for: None,
            limit: self.limit.filter(|_| self.idle_for.is_none()),
        }
    }
}

/// Which plan to execute, and how fast.
#[derive(Debug, Args)]
pub(crate) struct BulkRunArgs {
    /// The plan, as `bulk plan` wrote it
    plan: PathBuf,
    /// How many sagas to act on per second
    #[arg(long, value_name = "N", default_value = "10")]
    per_second: NonZeroU32,
    #[command(flatten)]
    actor: ActorArgs,
}

/// What can be done with each, in the words of the command line.
const ACTIONS: [(&str, BatchAction); 8] = [
    ("retry", BatchAction::Retry),
    ("retry-now", BatchAction::RetryNow),
    ("skip", BatchAction::Skip),
    ("force-completed", BatchAction::ForceCompleted),
    ("force-compensated", BatchAction::ForceCompensated),
    ("cancel", BatchAction::Cancel),
    ("pause", BatchAction::Pause),
    ("resume", BatchAction::Resume),
];

pub(crate) async fn bulk(
    admin: &TenantAdmin<'_, impl OpenStore>,
    command: &BulkCommand,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    match command {
        BulkCommand::Plan(args) => plan(admin, args, out).await,
        BulkCommand::Run(args) => run(admin, args, out).await,
    }
}

async fn plan(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &BulkPlanArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let file_name = args.out.display();
    let (sagas, now) = admin.read_at().await?;
    let mut plan = sagas.plan(args.action, &args.filter()).await?;
    if let Some(time) = args.idle_for {
        // Read after the plan: what stands idle now has not moved since it was planned.
        let idle = idle_keys(&sagas.query(), args, now, time).await?;
        plan.sagas.retain(|planned| idle.contains(&planned.key));
        plan.sagas.truncate(args.limit.unwrap_or(usize::MAX));
    }
    let cannot_write = || format!("cannot write {file_name}");
    let mut file = OpenOptions::new().write(true).create_new(true).open(&args.out).with_context(cannot_write)?;
    let written = PlanFile { plan, tenant: Some(admin.tenant().cloned().unwrap_or_default()) };
    file.write_all(&written.to_json()?).with_context(cannot_write)?;
    let run = admin.command_line(&format!("bulk run {file_name}"));
    print_plan(&written.plan, &run, out)
        .with_context(|| format!("the plan is in {file_name}, but it could not be printed"))?;
    Ok(ExitCode::SUCCESS)
}

/// The sagas that have not moved for this time before `now`.
async fn idle_keys(
    query: &SagaQuery<impl Store>,
    args: &BulkPlanArgs,
    now: Timestamp,
    time: Duration,
) -> anyhow::Result<HashSet<String>> {
    let latest = now.0.saturating_sub(i64::try_from(time.as_micros()).unwrap_or(i64::MAX));
    let definition = args.definition.clone();
    let mut filter = SagaFilter { status: args.status, definition, limit: PAGE, ..SagaFilter::default() };
    let mut idle = HashSet::new();
    loop {
        let sagas = query.list(filter.clone()).await?;
        idle.extend(sagas.iter().filter(|saga| saga.advanced_at.0 <= latest).map(|saga| saga.key.to_string()));
        filter.after = sagas.last().map(|saga| saga.id);
        if sagas.len() < PAGE {
            return Ok(idle);
        }
    }
}

/// Prints what is planned, and the command that carries it out.
fn print_plan(plan: &BatchPlan, run: &str, out: &mut dyn Write) -> io::Result<()> {
    for planned in &plan.sagas {
        let PlannedAction { key, status, step, reason, refusal, .. } = planned;
        let step = step.as_deref().unwrap_or("-");
        let why = reason.as_deref().unwrap_or("-");
        let refusal = refusal.as_ref().map(|refusal| format!(" (would be refused: {refusal})")).unwrap_or_default();
        if print_row(out, OneLine(format_args!("{key:<24} {status:<12} {step:<16} {why}{refusal}")))?.is_break() {
            break;
        }
    }
    let refused = plan.sagas.iter().filter(|planned| planned.refusal.is_some()).count();
    let refused = if refused > 0 { format!(", of which {refused} would be refused") } else { String::new() };
    let count = plan.sagas.len();
    print(out, format_args!("{count} sagas{refused}; nothing is changed yet: {run} --reason TEXT\n"))
}

async fn run(
    admin: &TenantAdmin<'_, impl OpenStore>,
    args: &BulkRunArgs,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let file_name = args.plan.display();
    let text = std::fs::read(&args.plan).with_context(|| format!("cannot read {file_name}"))?;
    let file = PlanFile::from_json(&text).with_context(|| format!("{file_name} is no plan that `bulk plan` wrote"))?;
    let sagas = admin.with_tenant(file.tenant(admin.tenant())?).actor(&args.actor).await?;
    let plan = file.plan;
    let count = plan.sagas.len();
    let progress = |place: usize, result: &BatchResult| {
        let key = plan.sagas.get(place).map_or("", |planned| planned.key.as_str());
        // A standard error that is closed does not stop a plan in its middle.
        print_remark(format_args!("{}/{count} {key}: {}", place + 1, in_words(result)));
    };
    let summary = sagas.execute(&plan, &args.actor.reason, args.per_second, progress).await?;
    let BatchSummary { done, already, refused, failed, .. } = &summary;
    let (refused, failed) = (refused.len(), failed.len());
    print_done(out, format_args!("{done} done, {already} done before, {refused} refused, {failed} failed"))?;
    Ok(if refused + failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

fn in_words(result: &BatchResult) -> String {
    match result {
        BatchResult::Done => "done".to_owned(),
        BatchResult::Already => "done before".to_owned(),
        BatchResult::Refused(why) => format!("refused: {why}"),
        BatchResult::Failed(why) => format!("failed: {why}"),
        _ => String::new(),
    }
}
