//! Asks other services which of the sagas are closed that this one did steps for: a message that says so may have been lost.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::maintenance::{Maintenance, PassError};
use crate::engine::commit::changes;
use crate::engine::message::{AskedSaga, CLOSED_MAX};
use crate::engine::store_calls::{catch_panic, store_error};
use crate::key::{Key, Tenant};
use crate::log;
use crate::machine::SagaState;
use crate::store::{DefinitionId, Store, UnclosedFilter, UnclosedStep};

/// One message: its tenant, the service that asked for the steps, and the own service that did them.
type Question<'a> = (Tenant, String, &'a str);

impl<S: Store> Maintenance<S> {
    /// Asks about some of the hosted steps that no message has closed for long; answers whether there are more.
    ///
    /// The store has moved on before the messages are recorded. What a crash loses in between is asked for by the next walk.
    pub(super) async fn ask_for_closed(&self, epoch: u64) -> Result<bool, PassError> {
        let Some(interval) = self.ctx.settings.closed_asked_after.filter(|_| !self.ctx.hosted.is_empty()) else {
            return Ok(false);
        };
        let hosted = self.ctx.hosted.iter();
        let hosted: HashMap<&DefinitionId, (&str, usize)> = hosted
            .map(|((service, _), definition)| (&definition.id, (service.as_str(), definition.steps.len())))
            .collect();
        let definitions = hosted.keys().map(|id| (*id).clone()).collect();
        let filter = UnclosedFilter { definitions, interval, limit: CLOSED_MAX };
        let unclosed = catch_panic("unclosed", self.ctx.store.unclosed(epoch, &filter)).await?;
        let mut questions: BTreeMap<Question<'_>, BTreeMap<Key, Duration>> = BTreeMap::new();
        for step in unclosed.steps {
            let Some((own, steps)) = hosted.get(&step.definition) else { continue };
            let Some(asker) = asker_of(&step, *steps) else { continue };
            let sagas = questions.entry((step.tenant, asker, own)).or_default();
            let ended_ago = sagas.entry(step.key.asked_for()).or_insert(step.ended_ago);
            *ended_ago = step.ended_ago.min(*ended_ago);
        }
        if !questions.is_empty() {
            self.ask(questions, interval).await?;
        }
        Ok(unclosed.more)
    }

    /// Asks the services, but for those whose last questions have waited to be sent since an earlier walk. They may be gone, which does
    /// not concern the others.
    async fn ask(
        &self,
        questions: BTreeMap<Question<'_>, BTreeMap<Key, Duration>>,
        interval: Duration,
    ) -> Result<(), PassError> {
        let mut messages = Vec::new();
        let mut askers = Vec::new();
        for ((tenant, asker, own), sagas) in questions {
            let sagas = sagas.into_iter().map(|(key, ended_ago)| AskedSaga { key, ended_ago });
            let sagas: Vec<AskedSaga> = sagas.collect();
            messages.push(self.messages.closed_question(&tenant, own, &asker, &sagas));
            askers.push((asker, sagas.len()));
        }
        let ages = catch_panic("oldest_ages", self.ctx.store.oldest_ages(&messages)).await?;
        // A question is younger than the walk that asked it, so the next walk finds it a little younger than the interval.
        let mut to_send = Vec::new();
        for ((message, (asker, count)), age) in messages.into_iter().zip(askers).zip(ages) {
            if let Some(after) = age.filter(|age| *age >= interval / 2) {
                log::warn!(service = &*asker, count, ?after, "closed sagas not asked for");
            } else {
                log::info!(service = &*asker, count, "asked for closed sagas");
                to_send.push(message);
            }
        }
        if to_send.is_empty() {
            return Ok(());
        }
        let recorded = self.committer.recorder.record(changes::send(to_send)).await;
        recorded.map_err(|error| store_error(&error))?.ok();
        self.committer.outbox.wake_relay();
        Ok(())
    }
}

/// The service that asked for a step. No service closes a step that an event asked for.
fn asker_of(step: &UnclosedStep, steps: usize) -> Option<String> {
    let caller = SagaState::decode(&step.state, steps).ok()?.caller?;
    Some(caller.reply_to).filter(|asker| !asker.is_empty())
}
