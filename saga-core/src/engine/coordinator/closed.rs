//! Answers hosts that ask which of the sagas are closed that they did steps for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::coordinator::Coordinator;
use crate::engine::commit::changes;
use crate::engine::message::{AskedSaga, HandleError, InboundMessage};
use crate::key::Key;
use crate::log;
use crate::store::{Changes, Status, Store};

impl<S: Store> Coordinator<S> {
    /// Tells the host which of these sagas are closed. Of the others it hears nothing, and asks again.
    ///
    /// A saga is closed if only its tombstone is kept. One that is not known was purged, or this store has lost it: it counts as
    /// closed only if it would be purged by now, however it had ended. While its key may still be in use, a host that remembers
    /// the step is all that keeps it from taking effect twice.
    pub(crate) async fn answer_closed(&self, inbound: &InboundMessage, asked: &[AskedSaga]) -> Result<(), HandleError> {
        let message = &inbound.message;
        let host = message.headers.reply_to.as_deref().unwrap_or_default();
        let mut changes = Changes::default();
        let is_young = inbound.age <= self.ctx.settings.message_age_max();
        if is_young && self.ctx.authorizer.may_hear_of_sagas(host) {
            let purged_after = self.purged_after(host);
            let kept = self.kept(inbound, asked).await?;
            let is_closed = |saga: &&AskedSaga| match place_in(&kept, &saga.key) {
                Kept::InFull => false,
                Kept::Tombstone => true,
                Kept::Nothing => purged_after.is_some_and(|after| saga.ended_ago >= after),
            };
            let closed: Vec<Key> = asked.iter().filter(is_closed).map(|saga| saga.key.clone()).collect();
            log::info!(service = host, count = closed.len(), "host told of closed sagas");
            if !closed.is_empty() {
                let (tenant, own) = (&message.tenant, &inbound.source);
                let answer = self.messages.closed_answer(tenant, own, host, &closed, message.committed_at);
                changes = changes::send(vec![answer]);
            }
        }
        let wakes = !changes.messages.is_empty();
        self.committer.recorder.record(inbound.handled(changes)).await?.ok();
        if wakes {
            self.committer.outbox.wake_relay();
        }
        Ok(())
    }

    /// After how long every saga with a step at this host is deleted with its key; nothing if one of them is kept for ever, or
    /// none is known here.
    fn purged_after(&self, host: &str) -> Option<Duration> {
        let definitions = self.ctx.definitions.values().filter(|definition| definition.hosts().contains(host));
        let kept_for = definitions.map(|definition| {
            let retention = definition.retention.or(self.ctx.settings.default_retention)?;
            Some(retention.key_for(Status::Completed).max(retention.key_for(Status::Compensated)))
        });
        let kept_for: Option<Vec<Duration>> = kept_for.collect();
        kept_for?.into_iter().max()
    }

    /// Which of these sagas and of the sagas that they are sub-sagas of are kept here, and whether only as tombstones.
    async fn kept(&self, inbound: &InboundMessage, asked: &[AskedSaga]) -> Result<BTreeMap<Key, bool>, HandleError> {
        let keys: BTreeSet<Key> = asked.iter().flat_map(|saga| with_outer(&saga.key)).collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        let known = self.ctx.store.known(&inbound.message.tenant, &keys).await?;
        Ok(known.into_iter().map(|known| (known.key, known.is_tombstone)).collect())
    }
}

/// What is kept of a saga.
enum Kept {
    InFull,
    Tombstone,
    Nothing,
}

/// A sub-saga is purged with the saga that is outermost.
fn place_in(kept: &BTreeMap<Key, bool>, key: &Key) -> Kept {
    let mut found: Vec<bool> = with_outer(key).filter_map(|key| kept.get(&key).copied()).collect();
    found.sort_unstable();
    match found.first() {
        None => Kept::Nothing,
        Some(false) => Kept::InFull,
        Some(true) => Kept::Tombstone,
    }
}

/// The key, and the keys of the sagas that it is a sub-saga of.
fn with_outer(key: &Key) -> impl Iterator<Item = Key> {
    std::iter::successors(Some(key.clone()), |inner| Some(inner.asked_for()).filter(|outer| outer != inner))
}
