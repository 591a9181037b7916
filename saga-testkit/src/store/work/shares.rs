//! What a claim takes that asks for a part of the work only.

use std::time::Duration;

use saga_core::store::{Changes, ClaimShare, ClaimStep, Claimed, Lease, ShareRequest, StepId, Work, WorkId, WorkKind};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, HOUR, OTHER, STEP, definition};
use crate::harness::StoreHarness;

/// Work rows of one saga: what they ask for, and of which step.
async fn insert<H: StoreHarness>(bench: &Bench<H>, begun: &Begun, rows: &[(WorkKind, &str)]) -> Result<(), Failed> {
    let mut commands = Vec::new();
    for (kind, step) in rows {
        let mut command = begun.command(WorkId(bench.id().await?), STEP);
        (command.kind, command.step) = (*kind, StepId::from_stored(step));
        commands.push(command);
    }
    bench.apply(Changes { commands, ..Changes::default() }).await
}

fn share(steps: &[(WorkKind, &'static str)], limit: usize) -> ClaimShare {
    let steps = steps.iter().map(|(kind, step)| ClaimStep { kind: *kind, step }).collect();
    ClaimShare { definition: definition(), steps: Some(steps), limit }
}

fn whole(limit: usize) -> ClaimShare {
    ClaimShare { definition: definition(), steps: None, limit }
}

async fn claim<H: StoreHarness>(
    bench: &Bench<H>,
    lease: Lease,
    limit: usize,
    shares: Vec<ClaimShare>,
) -> Result<Claimed, Failed> {
    Ok(bench.store.claim_shares(ShareRequest { lease, limit, shares, takes_over: true }).await?)
}

/// The steps that were claimed, in the order of their names.
fn steps(claimed: &Claimed) -> Vec<&str> {
    let mut steps: Vec<&str> = claimed.work.iter().map(|work| work.step.as_str()).collect();
    steps.sort_unstable();
    steps
}

pub(crate) async fn of_each_share_its_limit_is_taken<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let rows: Vec<String> = (1..=4).flat_map(|item| [format!("{STEP}#{item}"), format!("{OTHER}#{item}")]).collect();
    let rows: Vec<(WorkKind, &str)> = rows.iter().map(|step| (WorkKind::Do, &**step)).collect();
    insert(&bench, &begun, &rows).await?;
    let lease = bench.lease().await?;
    let both = || vec![share(&[(WorkKind::Do, STEP)], 3), share(&[(WorkKind::Do, OTHER)], 1)];
    let of = |claimed: &Claimed, step: &str| claimed.work.iter().filter(|work| work.step.step() == step).count();
    let claimed = claim(&bench, lease, 10, both()).await?;
    ensure_eq!((of(&claimed, STEP), of(&claimed, OTHER)), (3, 1), "of two shares of 3 and of 1");
    ensure_eq!(claimed.sagas.len(), 1, "the sagas of the rows, each once");
    ensure!(
        claimed.work.iter().all(|work| work.work.epoch == 2 && !work.recovered),
        "a first claim: {:?}",
        claimed.work
    );
    let claimed = claim(&bench, lease, 1, both()).await?;
    ensure_eq!(claimed.work.len(), 1, "the limit of the claim holds for all shares together");
    let claimed = claim(&bench, lease, 10, vec![whole(2)]).await?;
    ensure_eq!(claimed.work.len(), 2, "of a share that is a whole definition");
    Ok(())
}

pub(crate) async fn a_share_is_of_steps_and_kinds<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let undo = (WorkKind::Undo, "reserve:undo");
    let again = (WorkKind::Undo, "reserve:undo#2");
    let of_item = (WorkKind::Undo, "reserve#3:undo");
    let rows =
        [(WorkKind::Do, "reserve"), (WorkKind::Do, "reserve#3"), undo, again, of_item, (WorkKind::Do, "reserve-2")];
    insert(&bench, &begun, &rows).await?;
    let mut deadline = begun.deadline(WorkId(bench.id().await?));
    deadline.due_in = Duration::ZERO;
    bench.apply(Changes { commands: vec![deadline], ..Changes::default() }).await?;
    let lease = bench.lease().await?;
    let claimed = claim(&bench, lease, 10, vec![share(&[(WorkKind::Undo, "reserve")], 9)]).await?;
    ensure_eq!(steps(&claimed), ["reserve#3:undo", "reserve:undo", "reserve:undo#2"], "the undos of one step");
    let claimed = claim(&bench, lease, 10, vec![share(&[(WorkKind::Do, "reserve")], 9)]).await?;
    ensure_eq!(steps(&claimed), ["reserve", "reserve#3"], "the step, and an item of it");
    let claimed = claim(&bench, lease, 10, vec![share(&[(WorkKind::Deadline, "")], 9)]).await?;
    ensure_eq!(steps(&claimed), [":deadline"], "the row of the deadline");
    let claimed = claim(&bench, lease, 10, Vec::new()).await?;
    ensure!(claimed.work.is_empty() && claimed.sagas.is_empty(), "nothing was asked for: {claimed:?}");
    let claimed = claim(&bench, lease, 10, vec![whole(9)]).await?;
    ensure_eq!(steps(&claimed), ["reserve-2"], "what is left");
    Ok(())
}

pub(crate) async fn a_share_without_room_holds_up_no_other<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let rows: Vec<String> = (1..=9).map(|item| format!("{STEP}#{item}")).collect();
    let rows: Vec<(WorkKind, &str)> = rows.iter().map(|step| (WorkKind::Do, &**step)).collect();
    insert(&bench, &begun, &rows).await?;
    bench.pass(bench.harness.timing().lease).await;
    insert(&bench, &begun, &[(WorkKind::Do, OTHER)]).await?;
    let shares = vec![share(&[(WorkKind::Do, STEP)], 1), share(&[(WorkKind::Do, OTHER)], 1)];
    let claimed = claim(&bench, bench.lease().await?, 2, shares).await?;
    ensure_eq!(claimed.work.len(), 2, "one row of each share, though others have been due longer");
    let shares = vec![share(&[(WorkKind::Do, OTHER)], 1)];
    let claimed = claim(&bench, bench.lease().await?, 2, shares).await?;
    ensure!(claimed.work.is_empty(), "only the share was asked for: {:?}", claimed.work);
    ensure_eq!(bench.store.backlog().await?.0, 8, "the rows that were left free");
    Ok(())
}

pub(crate) async fn work_of_the_dead_is_shared_out<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    insert(&bench, &begun, &[(WorkKind::Do, STEP), (WorkKind::Do, "reserve#1"), (WorkKind::Do, OTHER)]).await?;
    ensure_eq!(bench.claim(bench.short_lease().await?, 10).await?.work.len(), 3, "the rows that one owner has");
    bench.outlast_lease().await;
    let shares = || vec![share(&[(WorkKind::Do, STEP)], 1), share(&[(WorkKind::Do, OTHER)], 5)];
    let claimed = claim(&bench, bench.lease().await?, 10, shares()).await?;
    ensure_eq!(claimed.work.len(), 2, "one row of each share");
    let claimed = claim(&bench, bench.lease().await?, 10, shares()).await?;
    ensure_eq!(claimed.work.len(), 1, "the row that found no room before");
    Ok(())
}

pub(crate) async fn what_falls_due_later_is_announced<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let mut later = begun.command(WorkId(bench.id().await?), STEP);
    later.due_in = HOUR;
    bench.apply(Changes { commands: vec![later], ..Changes::default() }).await?;
    let lease = bench.lease().await?;
    let claimed = claim(&bench, lease, 10, vec![share(&[(WorkKind::Do, STEP)], 1)]).await?;
    ensure!(claimed.work.is_empty(), "a row was claimed that is not due: {:?}", claimed.work);
    let due_in = claimed.next_due_in.unwrap_or_default();
    ensure!(due_in > HOUR / 2 && due_in <= HOUR, "the row is due in an hour, and {due_in:?} was told");
    let claimed = claim(&bench, lease, 10, vec![share(&[(WorkKind::Undo, STEP)], 1)]).await?;
    ensure_eq!(claimed.next_due_in, None, "no row of that share waits");
    insert(&bench, &begun, &[(WorkKind::Do, "reserve#1"), (WorkKind::Do, "reserve#2")]).await?;
    let claimed = claim(&bench, lease, 1, vec![share(&[(WorkKind::Do, STEP)], 5)]).await?;
    ensure_eq!((claimed.work.len(), claimed.next_due_in), (1, Some(Duration::ZERO)), "one more is due");
    Ok(())
}
