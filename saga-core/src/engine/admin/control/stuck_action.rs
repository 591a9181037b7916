//! Acting on a saga that is stuck: from what the operator wants to the commit.

use std::collections::VecDeque;
use std::time::Duration;

use super::due_now::due_now;
use super::stuck_input::{check_not_started, replace_input};
use crate::engine::admin::admin_context::{AdminContext, moved, refused};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::decide::arm_output;
use crate::engine::instance::{AttemptDetails, SagaInstance};
use crate::key::Key;
use crate::machine::{Action, Event, StepPhase, Stuck};
use crate::store::{Miss, SagaWithSteps, Status, Store};

/// What an operator wants to be done with a stuck saga.
pub(crate) struct StuckAction {
    pub(crate) action: Action,
    /// The output that a skipped step counts as having.
    pub(crate) output: Option<Vec<u8>>,
    /// The input that a step that is tried again has from now on.
    pub(crate) input: Option<Vec<u8>>,
}

impl StuckAction {
    pub(crate) fn of(action: Action) -> Self {
        Self { action, output: None, input: None }
    }

    pub(crate) fn force(completed: bool, reason: &str) -> Self {
        Self::of(Action::Force { completed, reason: reason.to_owned() })
    }
}

/// Acts on a stuck saga that is still at the revision `seen`, if one is given.
pub(crate) async fn act_on_stuck<S: Store>(
    ctx: &AdminContext<S>,
    key: &Key,
    seen: Option<u64>,
    wanted: StuckAction,
    reason: &str,
) -> Result<(), RuntimeError> {
    outside_step()?;
    let StuckAction { action, output, input } = wanted;
    let mut entry = ctx.audit_entry(name_of(&action), reason);
    if let Some(problem) = entry.problem() {
        return Err(refused(key, problem));
    }
    let stored = ctx.stored(key, seen).await?;
    let mut saga = stuck_instance(ctx, &stored)?;
    let (action, output) = choose_arm(key, &saga, action, output)?;
    let parked = saga.state.paused.as_ref().map(|pause| pause.parked.clone()).unwrap_or_default();
    check_output(key, &saga, &action, output.as_deref())?;
    if let Some(input) = input {
        check_not_started(ctx, key, &saga).await?;
        replace_input(key, &mut saga, input, &mut entry)?;
    }
    let next_work = ctx.next_work(&saga).await?;
    let details = AttemptDetails { output, ..AttemptDetails::default() };
    let decided = ctx.decider()?.decide(&mut saga, Event::Operator(action), &details, next_work);
    let mut pending = decided.map_err(|refusal| refused(key, refusal.to_string()))?;
    if !parked.is_empty() && !saga.state.is_paused() {
        // A saga that an operator ended by force leaves no row behind that waits for a resume.
        let withdrawn = &pending.changes.withdrawn;
        let due = due_now(&stored, &parked).into_iter().filter(|row| !withdrawn.contains(&row.work.id));
        pending.changes.postponed.extend(due);
        pending.leave_free(Duration::ZERO);
    }
    pending.changes.history.push(entry.entry(saga.id));
    match ctx.commit(key, pending).await? {
        Ok(()) => Ok(()),
        Err(Miss::Saga(row)) => Err(moved(&row)),
        Err(miss) => Err(refused(key, format!("the action did not apply: {miss:?}"))),
    }
}

/// The saga as the machine decides about it, with the input that the stuck step had.
fn stuck_instance<S: Store>(ctx: &AdminContext<S>, stored: &SagaWithSteps) -> Result<SagaInstance<S>, RuntimeError> {
    let mut saga = ctx.instance(stored)?;
    find_stuck(&mut saga, stored);
    if let Some((step, input)) = saga.state.stuck.as_ref().and_then(|stuck| Some((stuck.step, stuck.input.clone()?))) {
        saga.inputs.set(step, input.into_bytes().into());
    }
    Ok(saga)
}

/// The only output of a choice that is skipped is the arm that runs.
fn choose_arm<S: Store>(
    key: &Key,
    saga: &SagaInstance<S>,
    action: Action,
    output: Option<Vec<u8>>,
) -> Result<(Action, Option<Vec<u8>>), RuntimeError> {
    let choice = saga.state.stuck.as_ref().map(|stuck| stuck.step);
    let choice = choice.filter(|&step| action == Action::Skip && saga.definition.shape.is_choice(step));
    let Some(choice) = choice else { return Ok((action, output)) };
    let of = &saga.definition.shape.steps[choice];
    let named = |name: String| {
        let arm = of.arms.iter().position(|arm| *arm == name);
        let known = of.arms.iter().map(|arm| format!("`{arm}`")).collect::<Vec<_>>().join(", ");
        arm.ok_or_else(|| refused(key, format!("`{}` has no arm `{name}`; it has {known}", of.name)))
    };
    let wanted = output.map(|output| serde_json::from_slice::<Option<String>>(&output)).transpose();
    let wanted = wanted.map_err(|_| refused(key, format!("`{}` is a choice; name the arm that runs", of.name)))?;
    let arm = wanted.flatten().map(named).transpose()?;
    Ok((Action::Choose { arm }, Some(arm_output(of, arm))))
}

/// A step that is skipped needs an output if a later step takes one.
fn check_output<S: Store>(
    key: &Key,
    saga: &SagaInstance<S>,
    action: &Action,
    output: Option<&[u8]>,
) -> Result<(), RuntimeError> {
    let (Action::Skip, Some(stuck)) = (action, &saga.state.stuck) else { return Ok(()) };
    let (step, base) = (saga.step(stuck.step), saga.state.base(stuck.step));
    let name = saga.doing(stuck.step);
    let later = &saga.definition.steps[base + 1..];
    let taker = later.iter().find(|later| later.takes_output_of(step.name));
    let check = step.check_list.filter(|_| base == stuck.step).unwrap_or(step.check_output);
    match (taker, output) {
        (_, Some(output)) if !stuck.undo => {
            check(output).map_err(|problem| refused(key, format!("`{name}` cannot have this output: {problem}")))
        }
        (Some(taker), None) if !stuck.undo => {
            let problem = format!(
                "the step `{}` takes the output of `{name}`; skip it with `skip_with` and that output",
                taker.name
            );
            Err(refused(key, problem))
        }
        _ => Ok(()),
    }
}

/// The engine made a saga that it could not read stuck, and its state does not say so. Now that the saga can be read,
/// the steps that were under way are stuck, except those that still have a command.
fn find_stuck<S: Store>(saga: &mut SagaInstance<S>, stored: &SagaWithSteps) {
    if stored.saga.status != Status::Stuck || saga.state.stuck.is_some() {
        return;
    }
    let waits = if saga.definition.width > 1 { stored.work.as_slice() } else { &[] };
    let under_way = |phase| matches!(phase, StepPhase::Started | StepPhase::Undoing);
    let stuck = saga.state.steps.iter().enumerate().filter(|(_, step)| under_way(step.phase));
    let waits = |index| waits.iter().any(|work| work.step.step_and_item() == saga.doing(index).as_str());
    let stuck = stuck.filter(|(index, _)| !waits(*index)).map(|(index, step)| Stuck {
        step: index,
        undo: step.phase == StepPhase::Undoing,
        reason: "it could not be read".to_owned(),
        input: None,
    });
    let mut stuck: VecDeque<Stuck> = stuck.collect();
    for stuck in stuck.iter().filter(|stuck| !stuck.undo) {
        // Its row is gone, which knew whether a call of it had no answer.
        saga.state.steps[stuck.step].in_doubt |= saga.definition.shape.effect(&saga.state, stuck.step).is_outside();
    }
    (saga.state.stuck, saga.state.also_stuck) = (stuck.pop_front(), stuck.into());
}

fn name_of(action: &Action) -> &'static str {
    match action {
        Action::Retry => "retry",
        Action::Skip | Action::Choose { .. } => "skip",
        Action::Force { completed: true, .. } => "force as completed",
        Action::Force { completed: false, .. } => "force as compensated",
    }
}
