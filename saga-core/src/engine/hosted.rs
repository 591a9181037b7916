//! Steps that are hosted here for other services: each, or each item of a list, is a saga of one step, under the key of the
//! saga that asks for it and the step's name. So it is claimed, retried, recorded and undone like any other.

use std::sync::Arc;
use std::time::Duration;

use super::arrivals::Arrived;
use super::canonical::request_hash;
use super::command::Command;
use super::in_flight::{InFlight, earlier_outputs};
use super::letters::Problem;
use super::prepared::{Findings, HandOn, NextPlace, Prepared};
use super::remote::UndoContent;
use super::shared::Shared;
use super::step_or_item::step_or_item;
use crate::key::Key;
use crate::machine::{self, Caller, Event, Phase, SagaState, answer_of};
use crate::saga::Definition;
use crate::store::{
    Answer, Changes, DeadReason, Lease, Message, MessageKind, Miss, NewMessage, NewSaga, NewWork, RetryClass, SagaId,
    SagaRow, Status, Store, WorkId, WorkKind, WorkRef,
};
use crate::unwind::caught;

/// By how much a message must be younger than what is kept: the clocks of two databases may differ.
const MARGIN_MAX: Duration = Duration::from_hours(24);
/// How often a decision about a saga that moves all the time is made again at once.
const DECISIONS_MAX: usize = 8;

/// What a message asks for.
pub(super) struct Asked<S: Store> {
    pub(super) definition: Arc<Definition<S>>,
    /// The key of the hosted step.
    pub(super) key: Key,
    /// Who waits for a reply; empty where nobody does, since an event asked.
    pub(super) reply_to: String,
    /// The id of what asked.
    pub(super) by: u128,
    /// What an event was made into; nothing where the message itself brings the step's input.
    pub(super) made: Option<Made>,
}

/// What an event was made into.
pub(super) struct Made {
    /// The step's input.
    pub(super) input: Vec<u8>,
    /// The hash of the event.
    pub(super) hash: Vec<u8>,
    /// What earlier steps returned, of those that the step reads.
    pub(super) earlier: Vec<(String, String)>,
}

impl<S: Store> Shared<S> {
    /// The definition of a step that a service hosts here.
    pub(super) fn hosted(&self, service: &str, step: &str) -> Option<&Arc<Definition<S>>> {
        self.hosted.get(&(service.to_owned(), step.to_owned()))
    }

    /// Begins a hosted step, or answers again from its record.
    pub(super) async fn handle_command(self: &Arc<Self>, arrived: &Arrived) -> Result<(), Problem> {
        self.begin_hosted(&self.asked(arrived)?, arrived).await
    }

    /// The same, once it is known what is asked for.
    pub(super) async fn begin_hosted(self: &Arc<Self>, asked: &Asked<S>, arrived: &Arrived) -> Result<(), Problem> {
        if self.starting_keys.contains(&arrived.message.tenant, &asked.key) {
            // The transaction that began it with the first copy of this message has not ended.
            return Err(Problem::Later { why: "the step runs at this moment".to_owned(), is_counted: false });
        }
        let (saga, first) = self.first_of(asked, &arrived.message).await?;
        let changes = arrived.handled(Changes { start: Some(Box::new(saga)), ..Changes::default() });
        match self.recorder.record(changes).await {
            Ok(Ok(())) if first.place.is_some() => self.queue_up(first),
            Ok(Ok(())) => self.leave_work(Duration::ZERO),
            Ok(Err(Miss::Saga(row))) => return self.answer_again(asked, &row, arrived).await,
            // Somebody else has the message.
            Ok(Err(_)) => {}
            Err(error) => {
                if error.class == RetryClass::Unknown {
                    // What was committed after all is leased to this process, which does not know it.
                    self.give_back(&[first.work]).await;
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Begins a hosted step in the transaction that runs it. Answers whether that is how it went.
    pub(super) async fn begin_at_once(self: &Arc<Self>, arrived: &Arrived) -> bool {
        let asked = match arrived.message.kind {
            MessageKind::Event => self.asked_by_event(arrived).await,
            _ => self.asked(arrived),
        };
        let Ok(asked) = asked else { return false };
        if !self.limits.is_proven(asked.definition.steps[0].name) {
            return false;
        }
        let Ok((saga, first)) = self.first_of(&asked, &arrived.message).await else { return false };
        self.starts_with_step(&first)
            && matches!(self.start_with_step(first, &Arc::new(saga), self.tasks.enter()).await, Ok(Ok(())))
    }

    /// The hosted step that a command asks for, and its first command: with a lease and a place, if there is one.
    async fn first_of(&self, asked: &Asked<S>, message: &Message) -> Result<(NewSaga, Command<S>), Problem> {
        let step = &asked.definition.steps[0];
        let input = asked.made.as_ref().map_or(&message.payload, |made| &made.input);
        check_value(step.check_input, input)
            .map_err(|problem| Problem::Dead(DeadReason::Undecodable, format!("its content: {problem}")))?;
        let (mut state, _) = machine::start(&asked.definition.shape);
        state.caller = Some(Box::new(Caller {
            reply_to: asked.reply_to.clone(),
            command: Some(asked.by),
            undo: None,
            traceparent: message.headers.traceparent.clone(),
            earlier: asked.made.as_ref().map(|made| made.earlier.clone()).unwrap_or_default(),
        }));
        let mut saga = self.fresh(asked, message, input, state).await?;
        let work = WorkRef { id: WorkId(saga.id.0 + 1), epoch: 1 };
        let owner = self.member();
        let effect = asked.definition.shape.steps[0].effect;
        let seat = self.bulkheads.seat(&asked.definition.id, 0, false, effect);
        let place = owner.and_then(|_| self.place_to_begin(seat));
        let lease = owner.filter(|_| place.is_some()).map(|owner| Lease { owner, ttl: self.settings.lease_ttl });
        let lease_until = self.env.now().saturating_add(self.settings.lease_ttl);
        saga.commands.push(NewWork {
            id: work.id,
            saga: saga.id,
            tenant: saga.tenant.clone(),
            key: saga.key.clone(),
            kind: WorkKind::Do,
            step: crate::key::StepId::doing(step.name),
            definition: saga.definition.clone(),
            payload: None,
            due_in: Duration::ZERO,
            lease,
            tried: None,
        });
        let first = Command {
            saga: in_flight(&asked.definition, &saga)?,
            work,
            order: machine::Command::Do { step: 0 },
            attempts: 0,
            maybe: false,
            suspect: false,
            runs_on: true,
            starting: None,
            kept: None,
            reported: None,
            retrying_for: Duration::ZERO,
            late: None,
            owner: owner.unwrap_or_else(|| self.member_id()),
            waits: false,
            lease_until,
            place,
        };
        Ok((saga, first))
    }

    /// Undoes a hosted step that was done, and bars one that was not.
    pub(super) async fn handle_undo(self: &Arc<Self>, arrived: &Arrived) -> Result<(), Problem> {
        self.undo_hosted(&self.asked(arrived)?, arrived).await
    }

    /// The same, once it is known what is asked for.
    pub(super) async fn undo_hosted(self: &Arc<Self>, asked: &Asked<S>, arrived: &Arrived) -> Result<(), Problem> {
        for _ in 0..DECISIONS_MAX {
            let row = self.store.saga(&arrived.message.tenant, &asked.key).await?;
            let applied = match row {
                Some(row) => self.take_back(asked, &row, arrived).await?,
                None => self.take_back_unseen(asked, arrived, None).await?,
            };
            // It moved, or began, meanwhile: it is looked at again.
            if applied {
                return Ok(());
            }
        }
        Err(Problem::Later { why: "the step moves all the time".to_owned(), is_counted: false })
    }

    /// A command whose step key is known: it is answered from the record, as soon as there is an answer.
    pub(super) async fn answer_again(&self, asked: &Asked<S>, row: &SagaRow, arrived: &Arrived) -> Result<(), Problem> {
        let message = &arrived.message;
        let hash = asked.made.as_ref().map_or_else(|| request_hash(&message.payload), |made| made.hash.clone());
        // What an event barred before it began was never told what it would have been.
        let is_same = row.input_hash.is_empty() || row.input_hash == hash;
        if row.definition != asked.definition.id || !is_same {
            let detail = format!("the step key of `{}` was used with another content", asked.key);
            return Err(Problem::Dead(DeadReason::OtherPayload, detail));
        }
        let saga = self.known(asked, row).await?;
        let messages: Vec<_> = self.reply_again(&saga, asked.by, false).into_iter().collect();
        if messages.is_empty() && arrived.work.is_none() {
            return Ok(());
        }
        // Who lost the row to another need not answer: the other does.
        let _ = self.recorder.record(arrived.handled(Changes { messages, ..Changes::default() })).await?;
        self.tell_of_messages();
        Ok(())
    }

    async fn take_back(self: &Arc<Self>, asked: &Asked<S>, row: &SagaRow, arrived: &Arrived) -> Result<bool, Problem> {
        let mut saga = self.known(asked, row).await?;
        let message = &arrived.message;
        let was_taken_back = saga.state.caller.as_ref().is_some_and(|caller| caller.undo.is_some());
        let caller = saga.state.caller.get_or_insert_with(|| {
            let traceparent = message.headers.traceparent.clone();
            let reply_to = asked.reply_to.clone();
            Box::new(Caller { reply_to, command: None, undo: None, traceparent, earlier: Vec::new() })
        });
        caller.undo = Some(asked.by);
        if was_taken_back && answer_of(&saga.state).is_some() {
            let messages = self.reply_again(&saga, asked.by, true).into_iter().collect();
            let applied = self.recorder.record(arrived.handled(Changes { messages, ..Changes::default() })).await?;
            self.tell_of_messages();
            return Ok(!matches!(applied, Err(Miss::Saga(_))));
        }
        let hand_on = self.hand_on_of(&saga.definition).await?;
        let prepared = self.advance(&mut saga, Event::TakenBack, &Findings::default(), hand_on);
        // Only an operator's action is refused.
        let Ok(mut prepared) = prepared else { return Ok(true) };
        if prepared.changes.messages.is_empty() {
            // Nothing of it took effect before: there is nothing to undo.
            prepared.changes.messages.extend(self.reply_again(&saga, asked.by, true));
        }
        self.apply_arrived(prepared, arrived).await
    }

    /// An undo of a step that is not known here: one that is known to be done is undone from the message, and another
    /// one is barred, so that a late command finds that.
    async fn take_back_unseen(
        self: &Arc<Self>,
        asked: &Asked<S>,
        arrived: &Arrived,
        told: Option<NewMessage>,
    ) -> Result<bool, Problem> {
        let message = &arrived.message;
        let (input, output) = match &asked.made {
            Some(made) => (made.input.clone(), None),
            None => undo_content(asked, message)
                .map_err(|problem| Problem::Dead(DeadReason::Undecodable, format!("its content: {problem}")))?,
        };
        let (mut state, event) = machine::unseen(&asked.definition.shape, output.is_some());
        state.caller = Some(Box::new(Caller {
            reply_to: asked.reply_to.clone(),
            command: None,
            undo: Some(asked.by),
            traceparent: message.headers.traceparent.clone(),
            earlier: Vec::new(),
        }));
        let mut new = self.fresh(asked, message, &input, state).await?;
        let mut saga = in_flight(&asked.definition, &new)?.unstored();
        let hand_on = HandOn { ids: new.id.0 + 1, place: NextPlace::Nowhere };
        let findings = Findings { output, ..Findings::default() };
        // It has been taken back already: what turns out to be done is undone, and what did not begin never does.
        let Ok(mut prepared) = self.advance(&mut saga, event, &findings, hand_on) else { return Ok(true) };
        // It is one start.
        if let Some(advance) = prepared.changes.saga.take() {
            (new.status, new.state) = (advance.status, saga.state.encode());
        }
        prepared.changes.start = Some(Box::new(new));
        if let Some(told) = told {
            prepared.changes.messages.push(told);
        }
        self.apply_arrived(prepared, arrived).await
    }

    /// Bars a step that has not begun, and tells of it in the same commit; answers whether that is how it went.
    pub(super) async fn bar_and_tell(
        self: &Arc<Self>,
        asked: &Asked<S>,
        arrived: &Arrived,
        told: Option<NewMessage>,
    ) -> Result<bool, Problem> {
        self.take_back_unseen(asked, arrived, told).await
    }

    /// Applies what was decided for a message; answers whether it need not be decided again.
    pub(super) async fn apply_arrived(
        self: &Arc<Self>,
        mut prepared: Prepared<S>,
        arrived: &Arrived,
    ) -> Result<bool, Problem> {
        prepared.changes = arrived.handled(std::mem::take(&mut prepared.changes));
        match self.apply_prepared(prepared).await? {
            Ok(()) => Ok(true),
            // Somebody else has the message.
            Err(Miss::Work(work)) if arrived.work.is_some_and(|own| own.id == work) => Ok(true),
            Err(_) => Ok(false),
        }
    }

    /// Ids for the commands that may follow from a decision, one of which is run here if there is a place for it.
    pub(super) async fn hand_on_of(&self, definition: &Definition<S>) -> Result<HandOn, Problem> {
        let ids = self.take_ids(definition.width).await;
        let ids = ids.ok_or_else(|| Problem::Later { why: "the store gave no ids".to_owned(), is_counted: false })?;
        Ok(HandOn { ids: ids.start, place: NextPlace::Free })
    }

    fn asked(&self, arrived: &Arrived) -> Result<Asked<S>, Problem> {
        // What was stored was checked, but by the process that stored it: this one may host less.
        self.check(&arrived.message, &arrived.source)?;
        let headers = &arrived.message.headers;
        let step = headers.step.as_deref().unwrap_or_default();
        let unknown = || Problem::Dead(DeadReason::UnknownStep, format!("the step `{step}` is not hosted here"));
        let named = step_or_item(step).ok();
        let definition = named.and_then(|(name, _)| self.hosted(&arrived.source, name)).ok_or_else(unknown)?;
        let key = Key::from_message(headers.saga_key.as_deref().unwrap_or_default());
        let key = key.map_err(|problem| Problem::Dead(DeadReason::Unreadable, problem.to_string()))?;
        self.check_age(arrived)?;
        Ok(Asked {
            definition: Arc::clone(definition),
            key: key.hosted(step),
            reply_to: headers.reply_to.clone().unwrap_or_default(),
            by: arrived.message.id.0.as_u128(),
            made: None,
        })
    }

    /// Whether what a message asks for would still be known, had it been done before.
    pub(super) fn check_age(&self, arrived: &Arrived) -> Result<(), Problem> {
        let horizon = self.settings.retention.saturating_sub(MARGIN_MAX.min(self.settings.retention / 4));
        if arrived.age > horizon {
            let (age, limit) = (arrived.age.as_secs(), horizon.as_secs());
            let detail = format!("it was committed {age} s ago, and records are kept for {limit} s at least");
            return Err(Problem::Dead(DeadReason::TooOld, detail));
        }
        Ok(())
    }

    /// A hosted step that is not written yet; the id behind its own is for a command.
    async fn fresh(
        &self,
        asked: &Asked<S>,
        message: &Message,
        input: &[u8],
        state: SagaState,
    ) -> Result<NewSaga, Problem> {
        let later = || Problem::Later { why: "the store gave no ids".to_owned(), is_counted: false };
        let ids = self.take_ids(2).await.ok_or_else(later)?;
        Ok(NewSaga {
            id: SagaId(ids.start),
            tenant: message.tenant.clone(),
            key: asked.key.clone(),
            definition: asked.definition.id.clone(),
            digest: asked.definition.digest,
            input: input.to_vec(),
            input_hash: asked.made.as_ref().map_or_else(|| request_hash(input), |made| made.hash.clone()),
            status: Status::Running,
            state: state.encode(),
            commands: Vec::new(),
        })
    }

    async fn known(&self, asked: &Asked<S>, row: &SagaRow) -> Result<InFlight<S>, Problem> {
        let records = self.store.records_of(&row.tenant, &row.key).await?;
        let unreadable = |why| Problem::Later { why, is_counted: true };
        InFlight::of_row(row, records, &asked.definition).map_err(unreadable)
    }
}

/// A hosted step that is about to be written.
pub(super) fn in_flight<S: Store>(definition: &Arc<Definition<S>>, new: &NewSaga) -> Result<InFlight<S>, Problem> {
    let state = SagaState::decode(&new.state, definition.steps.len());
    let state = state.map_err(|why| Problem::Later { why, is_counted: true })?;
    debug_assert_eq!(state.phase, Phase::Running);
    let outputs = earlier_outputs(definition, &state);
    Ok(InFlight {
        id: new.id,
        tenant: new.tenant.clone(),
        key: new.key.clone(),
        definition: Arc::clone(definition),
        version: 1,
        state,
        input: new.input.clone().into(),
        outputs,
        inputs: Vec::new(),
        of_item: None,
    })
}

/// What an undo brings: what the step took, and what it returned if that is known to have happened.
fn undo_content<S: Store>(asked: &Asked<S>, message: &Message) -> Result<(Vec<u8>, Option<Vec<u8>>), String> {
    let content: UndoContent<'_> = serde_json::from_slice(&message.payload).map_err(|error| error.to_string())?;
    let step = &asked.definition.steps[0];
    let input = content.input.get().as_bytes();
    check_value(step.check_input, input)?;
    let done = message.headers.answer == Some(Answer::Done);
    // An output that is `null` cannot be told from none there; the header says whether there is one.
    let output = done.then(|| content.output.map_or_else(|| b"null".to_vec(), |output| output.get().into()));
    if let Some(output) = &output {
        check_value(step.check_output, output)?;
    }
    Ok((input.to_vec(), output))
}

/// Whether bytes decode. What reads them is the user's code: a panic in it concerns this message only.
pub(super) fn check_value(check: fn(&[u8]) -> Result<(), String>, bytes: &[u8]) -> Result<(), String> {
    caught(|| check(bytes)).unwrap_or_else(|panic| Err(format!("reading it panicked: {panic}")))
}
