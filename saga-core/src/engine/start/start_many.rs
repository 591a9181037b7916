//! Starts many sagas in one commit.

use std::ops::Range;
use std::sync::Arc;

use super::starter::{COMMIT_MAX, RequestedStart, StartCall, StartedSaga, Starter, ids_of_start};
use crate::engine::context::{StartError, is_inside_step};
use crate::engine::decide::StartOptions;
use crate::engine::store_calls::{RecordError, store_error};
use crate::key::{Key, Tenant};
use crate::saga::Definition;
use crate::store::{MemberId, NewSaga, Store};

/// The key and the encoded input of a saga, or why it is not started.
pub(crate) type StartInput = Result<(Key, Vec<u8>), StartError>;

type Answered = Result<StartedSaga, StartError>;

fn failed(problem: Option<&RecordError>) -> StartError {
    problem.map_or(StartError::ShuttingDown, |error| StartError::Store(store_error(error)))
}

impl<S: Store> Starter<S> {
    /// Starts sagas of one definition, at most `COMMIT_MAX` in a commit. Returns an answer for each, in their order. A refused one does
    /// not affect the others.
    pub(crate) async fn start_sagas(
        self: &Arc<Self>,
        definition: &Arc<Definition<S>>,
        tenant: &Tenant,
        inputs: Vec<StartInput>,
    ) -> Vec<Answered> {
        let mut answers = Vec::with_capacity(inputs.len());
        let mut inputs = inputs.into_iter();
        loop {
            let together: Vec<StartInput> = inputs.by_ref().take(COMMIT_MAX).collect();
            if together.is_empty() {
                return answers;
            }
            let new = together.into_iter().map(|input| {
                let (key, input) = input?;
                if is_inside_step() {
                    return Err(StartError::InsideStep);
                }
                self.new_saga(definition, tenant, key, input, StartOptions::default())
            });
            answers.extend(self.start_new(definition, new.collect()).await);
        }
    }

    /// Starts those that were not refused, in one commit.
    async fn start_new(
        self: &Arc<Self>,
        definition: &Arc<Definition<S>>,
        new: Vec<Result<NewSaga, StartError>>,
    ) -> Vec<Answered> {
        let count = new.iter().filter(|new| new.is_ok()).count();
        let mut calls = Vec::with_capacity(count);
        let mut started = Vec::new().into_iter();
        let mut waiting: Vec<Result<RequestedStart, StartError>> = Vec::with_capacity(new.len());
        match self.ids_of_starts(count * ids_of_start(definition)).await {
            Err(problem) => {
                let not_started = |new: Result<NewSaga, StartError>| match new {
                    Ok(_) => Err(failed(problem.as_ref())),
                    Err(refused) => Err(refused),
                };
                waiting.extend(new.into_iter().map(not_started));
            }
            Ok((owner, mut ids)) => {
                for new in new {
                    waiting.push(new.map(|mut saga| {
                        let slot = self.assign_ids(definition, &mut saga, &mut ids, owner);
                        let wanted = self.wanted(&saga);
                        let lease_until = self.ctx.env.now().saturating_add(self.ctx.settings.lease_ttl);
                        calls.push(StartCall { saga, slot, lease_until, under_way: self.ctx.lifecycle.enter() });
                        wanted
                    }));
                }
            }
        }
        let mut problem = None;
        if !calls.is_empty() {
            match self.start_together(calls).await {
                Some(Ok(together)) => started = together.into_iter(),
                Some(Err(error)) => problem = Some(error),
                None => {}
            }
        }
        let answer = |wanted: Result<RequestedStart, StartError>| {
            let wanted = wanted?;
            match started.next() {
                Some(started) => self.start_answer(definition, wanted, started),
                None => Err(failed(problem.as_ref())),
            }
        };
        waiting.into_iter().map(answer).collect()
    }

    /// This process as the owner of first commands, and the ids of sagas and their commands; or what the store said, or
    /// nothing when the runtime shuts down.
    async fn ids_of_starts(&self, count: usize) -> Result<(MemberId, Range<i64>), Option<RecordError>> {
        let owner = self.scheduler.membership.member().ok_or(None)?;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let ids = self
            .store_calls
            .ids
            .take(&*self.ctx.store, count)
            .await
            .map_err(|error| Some(RecordError::from(&error)))?;
        Ok((owner, ids))
    }
}
