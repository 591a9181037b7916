use std::{fs::OpenOptions, io::Write as _, process::ExitCode};

use anyhow::Context as _;
use saga_core::engine::{BatchPlan, BatchResult, BatchSummary, PlannedAction};

use super::open::{desk, desk_of};
use crate::{
    cli::{BulkCommand, CarryOutArgs, PlanArgs},
    place::Place,
    print::{print, say},
};

/// Something of the plan was not done.
const LEFT: u8 = 1;

/// Plans what is to be done with many orders, or does what was planned.
///
/// # Errors
///
/// A sentence, when the plan cannot be written or read, or the store cannot be used.
///
/// # Cancel safety
///
/// Dropped, some of it was done; the same again goes on with the rest.
pub async fn bulk(place: &impl Place, command: &BulkCommand) -> anyhow::Result<ExitCode> {
    match command {
        BulkCommand::Plan(args) => plan(place, args).await,
        BulkCommand::Run(args) => run(place, args).await,
    }
}

async fn plan(place: &impl Place, args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let shown = args.out.display();
    let store = place.look_at_store().await?;
    // Only who works on a store can ask for its time.
    let store = if args.idle_for.is_some() { place.open_store().await? } else { store };
    let plan = desk_of(store).plan(args.action.into(), &args.filter()).await?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(&args.out);
    let written = file.as_mut().map(|file| file.write_all(&serde_json::to_vec_pretty(&plan).unwrap_or_default()));
    written.map_err(|error| anyhow::anyhow!("cannot write {shown}: {error}"))??;
    for planned in &plan.sagas {
        let PlannedAction { key, status, step, reason, refusal, .. } = planned;
        let step = step.as_deref().unwrap_or("-");
        let why = reason.as_deref().unwrap_or("-");
        let refusal = refusal.as_ref().map(|refusal| format!(" (would be refused: {refusal})")).unwrap_or_default();
        print(format_args!("{key:<24} {status:<12} {step:<16} {why}{refusal}\n"))?;
    }
    let refused = plan.sagas.iter().filter(|planned| planned.refusal.is_some()).count();
    let refused = if refused > 0 { format!(", of which {refused} would be refused") } else { String::new() };
    print(format_args!(
        "{} sagas{refused}; nothing is changed yet: order-saga bulk run {shown} --reason TEXT\n",
        plan.sagas.len()
    ))?;
    Ok(ExitCode::SUCCESS)
}

async fn run(place: &impl Place, args: &CarryOutArgs) -> anyhow::Result<ExitCode> {
    let shown = args.plan.display();
    let text = std::fs::read(&args.plan).with_context(|| format!("cannot read {shown}"))?;
    let plan: BatchPlan =
        serde_json::from_slice(&text).with_context(|| format!("{shown} is no plan that `bulk plan` wrote"))?;
    let desk = desk(place, &args.act).await?;
    let count = plan.sagas.len();
    let progress = |place: usize, result: &BatchResult| {
        let said = match result {
            BatchResult::Done => "done".to_owned(),
            BatchResult::Already => "done before".to_owned(),
            BatchResult::Refused(why) => format!("refused: {why}"),
            BatchResult::Failed(why) => format!("failed: {why}"),
            _ => String::new(),
        };
        let key = plan.sagas.get(place).map_or("", |planned| planned.key.as_str());
        say(format_args!("{}/{count} {key}: {said}", place + 1));
    };
    let summary = desk.execute(&plan, &args.act.reason, args.per_second, progress).await?;
    let BatchSummary { done, already, refused, failed, .. } = &summary;
    let left = refused.len() + failed.len();
    print(format_args!("{done} done, {already} done before, {} refused, {} failed\n", refused.len(), failed.len()))?;
    Ok(if left == 0 { ExitCode::SUCCESS } else { ExitCode::from(LEFT) })
}
