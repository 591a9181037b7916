//! Calls the function of a batch step once, for many commands.

use std::pin::pin;
use std::sync::Arc;

use super::attempts::{Attempts, optional_outputs};
use super::ending::{ending_of, erred, trace};
use super::span::{in_span, span_of_batch};
use crate::engine::context::inside_step;
use crate::engine::execute::progress::IN_TRANSACTION;
use crate::engine::instance::{AttemptDetails, AttemptResult, WorkItem};
use crate::env::{Activity, during, timeout};
use crate::key::{Key, StepId, Tenant};
use crate::log;
use crate::machine::Ending;
use crate::saga::{BatchInputs, BatchUnfinished, StepRun, Unfinished};
use crate::step::{
    Args, CallKeys, ContextParts, Contexts, ExternalKey, LockedEntity, OptionalOutputs, Reporting, StepContext,
    StepError, TimeLeft,
};
use crate::store::{HandlerVerdict, Store};
use crate::unwind::{Guarded, caught_while};

/// The result of one call of a batch step.
pub(crate) enum BatchAttempt {
    /// A result for each command. The writes are kept.
    Each(Vec<AttemptResult>),
    /// The call failed as a whole. The writes are rolled back.
    Whole(HandlerVerdict),
    /// These commands, by index, have no result and run again alone. The writes are rolled back.
    Apart(Vec<usize>),
    /// The only command of the call failed. The writes are rolled back.
    Alone(AttemptResult, HandlerVerdict),
}

fn in_words(ending: &Ending) -> &str {
    match ending {
        Ending::Rejected(reason) | Ending::Refused(reason) => reason.message(),
        Ending::Erred { message, .. }
        | Ending::Unstorable { message }
        | Ending::Stuck { message }
        | Ending::Undecodable { message }
        | Ending::Broke { message } => message,
        Ending::Done | Ending::Vanished | Ending::NotDone => "",
    }
}

fn no_handler() -> BatchUnfinished {
    BatchUnfinished::Failed(StepError::unreadable("the registered definition has no function for it"))
}

/// What the context of one input says.
struct Call {
    tenant: Tenant,
    key: Key,
    saga_name: Arc<str>,
    numbered: StepId,
    attempt: u32,
    fence: u64,
    traceparent: Option<String>,
    earlier: OptionalOutputs,
    locked: Vec<LockedEntity>,
}

impl Call {
    fn of<S: Store>(command: &WorkItem<S>) -> Self {
        let saga = &command.saga;
        Self {
            tenant: saga.tenant.clone(),
            key: saga.definition.coordinator_key(&saga.key),
            saga_name: Arc::clone(&saga.definition.id.name),
            numbered: saga.key.numbered(command.step_id()),
            attempt: command.attempt_number(),
            fence: command.fence(),
            traceparent: saga.state.traceparent().map(str::to_owned),
            earlier: optional_outputs(saga),
            locked: command.locked.clone(),
        }
    }
}

impl<S: Store> Attempts<S> {
    /// Calls the handler of a batch step on the connection of a transaction.
    pub(crate) async fn attempt_batch_in(&self, commands: &[&WorkItem<S>], conn: &mut S::Conn) -> BatchAttempt {
        let Some(first) = commands.first() else { return BatchAttempt::Each(Vec::new()) };
        let contexts = self.contexts(commands);
        let encoded = commands.iter().map(|command| command.saga.input_of(command.step_index())).collect();
        let inputs = BatchInputs { encoded, contexts: Arc::clone(&contexts) };
        let args = Args { ctx: contexts.of(0), states: &self.ctx.states, outputs: &first.saga.outputs };
        let limit = first.options().timeout;
        let began = self.ctx.env.now();
        let span = span_of_batch(first, commands.len());
        let handler = async {
            let StepRun::Batch(run) = &first.step().run else { return Err(no_handler()) };
            Guarded::new(in_span(run(conn, args, inputs), span)).await
        };
        let env = &*self.ctx.env;
        let calling = pin!(caught_while(inside_step(handler)));
        let ended = during(env, Activity::Transaction, timeout(env, limit, calling)).await;
        let took = self.ctx.env.now().saturating_sub(began);
        let share = took / u32::try_from(commands.len()).unwrap_or(u32::MAX);
        let findings = |command: &WorkItem<S>| AttemptDetails {
            attempts: command.attempt_number(),
            took,
            share,
            ..AttemptDetails::default()
        };
        let whole = |ending: Ending, verdict: HandlerVerdict| {
            if let [only] = commands {
                let findings = findings(only);
                trace(only, &ending, findings.attempts);
                return BatchAttempt::Alone(AttemptResult { ending, findings }, verdict);
            }
            let (definition, step) = (&first.saga.definition.id, first.step().name);
            let (count, error) = (commands.len(), in_words(&ending));
            log::info!(%definition, step, count, error, "batch split");
            BatchAttempt::Whole(verdict)
        };
        match ended {
            Err(_) => whole(erred(format!("it took longer than its time limit of {limit:?}")), HandlerVerdict::Abandon),
            Ok(Err(panic)) => whole(erred(format!("it panicked: {panic}")), HandlerVerdict::RollBack),
            Ok(Ok(Err(BatchUnfinished::Failed(error)))) if self.is_conflict(&error) => {
                whole(erred(error.to_string()), HandlerVerdict::Conflict)
            }
            Ok(Ok(Err(BatchUnfinished::Failed(error)))) => {
                whole(ending_of(Unfinished::Failed(error)), HandlerVerdict::RollBack)
            }
            Ok(Ok(Err(BatchUnfinished::Apart(mut apart)))) => match (commands, apart.pop()) {
                ([_], Some((_, unfinished))) => whole(ending_of(unfinished), HandlerVerdict::RollBack),
                (_, last) => BatchAttempt::Apart(apart.into_iter().chain(last).map(|(index, _)| index).collect()),
            },
            Ok(Ok(Ok(answers))) => match self.conflict_in(&answers) {
                Some(error) => whole(erred(error.to_string()), HandlerVerdict::Conflict),
                None => self.check_answers(commands, &contexts, answers, &findings).map_or_else(
                    |(apart, ending)| match commands {
                        [_] => whole(ending, HandlerVerdict::RollBack),
                        _ => BatchAttempt::Apart(apart),
                    },
                    BatchAttempt::Each,
                ),
            },
        }
    }

    /// The first result that failed because a statement met another transaction.
    fn conflict_in<'a>(&self, answers: &'a [Result<Vec<u8>, StepError>]) -> Option<&'a StepError> {
        answers.iter().filter_map(|answer| answer.as_ref().err()).find(|error| self.is_conflict(error))
    }

    /// The result of each command.
    ///
    /// # Errors
    /// The indexes of the commands whose outputs or events cannot be stored, with the reason of the last one.
    fn check_answers(
        &self,
        commands: &[&WorkItem<S>],
        contexts: &Contexts,
        answers: Vec<Result<Vec<u8>, StepError>>,
        findings: &dyn Fn(&WorkItem<S>) -> AttemptDetails,
    ) -> Result<Vec<AttemptResult>, (Vec<usize>, Ending)> {
        let emitted = |index| contexts.take_emitted(index);
        let mut each = Vec::with_capacity(commands.len());
        let mut unstorable: Option<(Vec<usize>, Ending)> = None;
        for (index, (command, answer)) in commands.iter().zip(answers).enumerate() {
            let mut findings = findings(command);
            let ending = match answer {
                Err(error) => ending_of(Unfinished::Failed(error)),
                Ok(output) => match self.check_effects(command, Some(output), emitted(index), &mut findings) {
                    Ok(()) => Ending::Done,
                    Err(message) => {
                        let (apart, ending) =
                            unstorable.get_or_insert((Vec::new(), Ending::Unstorable { message: String::new() }));
                        apart.push(index);
                        *ending = Ending::Unstorable { message };
                        continue;
                    }
                },
            };
            each.push(AttemptResult { ending, findings });
        }
        if let Some(unstorable) = unstorable {
            return Err(unstorable);
        }
        for (command, attempted) in commands.iter().zip(&each) {
            trace(command, &attempted.ending, attempted.findings.attempts);
        }
        Ok(each)
    }

    /// The contexts of the inputs, each made when the step asks for it.
    fn contexts(&self, commands: &[&WorkItem<S>]) -> Arc<Contexts> {
        let calls: Vec<Call> = commands.iter().map(|command| Call::of(command)).collect();
        let limit = commands.first().map(|first| first.options().timeout).unwrap_or_default();
        let until = self.ctx.env.now().saturating_add(limit);
        let (env, cancel, namespace) =
            (Arc::clone(&self.ctx.env), self.ctx.lifecycle.stopping.clone(), self.ctx.settings.namespace.clone());
        Contexts::new(commands.len(), move |index| {
            let call = &calls[index];
            let keys = CallKeys {
                key: ExternalKey::of(namespace.as_ref(), &call.tenant, &call.key, call.numbered.clone()),
                do_key: None,
                saga_key: call.key.shared(),
                saga_name: Arc::clone(&call.saga_name),
            };
            let time_left = Some(TimeLeft::Until(until, Arc::clone(&env)));
            StepContext::new(ContextParts {
                traceparent: call.traceparent.clone(),
                earlier: call.earlier.clone(),
                locked: call.locked.clone(),
                reporting: Reporting::refused(IN_TRANSACTION),
                ..ContextParts::new(keys, call.attempt, call.fence, time_left, cancel.clone())
            })
        })
    }
}
