//! What carries messages from service to service: it duplicates, delays, reorders and loses them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use saga_core::env::Environment;
use saga_core::store::Timestamp;
use saga_core::transport::{Delivery, Message, MessageKind, Settlement};

use super::broker::Waiting;
use super::fault::Fault;
use super::world::World;
use crate::sim::sagas::ORIGIN_MICROS;
use crate::sim::schedule::Mutant;

/// How late a message may arrive.
const DELAY_MAX: Duration = Duration::from_secs(12);

/// Takes a message over. What becomes of it is drawn: it may come twice, late, or not at all.
pub(crate) fn accept(world: &Arc<World>, message: &Message) {
    let before = {
        let mut queues = world.broker.lock();
        let accepted = queues.accepted.entry(message.id).or_default();
        *accepted += 1;
        *accepted - 1
    };
    if before > 0 && message.kind == MessageKind::Command {
        world.hit(Fault::CommandSentAgain);
    }
    hold_back(world, message);
    let is_never_told =
        world.scenario.mutant == Some(Mutant::NeverAsksForClosed) && message.kind == MessageKind::Closed;
    if is_never_told || world.happens(|rates| rates.message_lost) {
        world.hit(Fault::MessageLost);
        if message.kind == MessageKind::Closed {
            world.lose_closed();
        }
        return;
    }
    let is_doubled = world.happens(|rates| rates.message_doubled);
    if is_doubled {
        world.hit(Fault::MessageDoubled);
    }
    for _ in 0..=u32::from(is_doubled) {
        world.broker.lock().under_way += 1;
        let waiting = Waiting { message: message.clone(), redelivered: false };
        if !world.happens(|rates| rates.message_delayed) {
            world.broker.put(waiting);
            continue;
        }
        world.hit(Fault::MessageDelayed);
        let (late, env) = (Arc::clone(world), world.env.clone());
        env.spawn(Box::pin(async move {
            late.wait_up_to(DELAY_MAX).await;
            late.broker.put(waiting);
        }));
    }
}

/// A copy of the message is held back, where the schedule wants it: until it is just accepted or just not any more, or until
/// its saga and the host's records of it are gone.
fn hold_back(world: &Arc<World>, message: &Message) {
    let Some(plan) = &world.scenario.retention else { return };
    if world.is_calm() || !world.draw(|random| random.per_mille(plan.message_held)) {
        return;
    }
    let (nearly, later) = world.draw(|random| (random.below(2_000), random.below(4)));
    let nearly = Duration::from_millis(nearly);
    let held = match later {
        0 | 1 => plan.age_max().saturating_sub(nearly),
        2 => plan.age_max() + nearly,
        _ => Duration::from_millis(world.draw(|random| random.below(plan.purged_within().as_millis() as u64))),
    };
    world.hit(Fault::MessageHeld);
    let (late, message, env) = (Arc::clone(world), message.clone(), world.env.clone());
    env.spawn(Box::pin(async move {
        late.env.sleep(held).await;
        late.broker.lock().under_way += 1;
        late.broker.put(Waiting { message, redelivered: false });
    }));
}

/// A consumer of a queue. What it has not settled when it is dropped comes again, to any consumer.
#[derive(Debug)]
pub(crate) struct Consumer {
    world: Arc<World>,
    topic: String,
    prefetch: usize,
    tags: u64,
    unsettled: BTreeMap<u64, Message>,
}

impl Consumer {
    pub(crate) fn new(world: &Arc<World>, topic: String, prefetch: usize) -> Self {
        Self { world: Arc::clone(world), topic, prefetch, tags: 0, unsettled: BTreeMap::new() }
    }

    /// At least one message, in any order.
    pub(crate) async fn receive(&mut self, limit: usize) -> Vec<Delivery> {
        let world = Arc::clone(&self.world);
        loop {
            let filled = world.broker.filled.notified();
            let taken = self.take(limit);
            if !taken.is_empty() {
                return taken;
            }
            filled.await;
        }
    }

    fn take(&mut self, limit: usize) -> Vec<Delivery> {
        let limit = limit.min(self.prefetch.saturating_sub(self.unsettled.len()));
        let mut queues = self.world.broker.lock();
        let queues = &mut *queues;
        let Some(waiting) = queues.waiting.get_mut(&self.topic) else { return Vec::new() };
        let mut taken = Vec::new();
        // As many as it takes, most often not all that are there.
        let most = self.world.draw(|random| random.between(1, 4)) as usize;
        while !waiting.is_empty() && taken.len() < limit.min(most) {
            let at = self.world.draw(|random| random.below(waiting.len() as u64)) as usize;
            let Waiting { mut message, redelivered } = waiting.swap_remove(at);
            if self.world.scenario.mutant == Some(Mutant::ActsOnOldMessages) {
                message.committed_at = Timestamp(ORIGIN_MICROS + self.world.env.now().as_micros() as i64);
            }
            if redelivered {
                self.world.hit(Fault::Redelivered);
            }
            let asked = message.headers.correlation.and_then(|asked| queues.accepted.get(&asked));
            if message.kind == MessageKind::Reply && asked.is_some_and(|times| *times > 1) {
                self.world.hit(Fault::ReplyLate);
            }
            self.tags += 1;
            self.unsettled.insert(self.tags, message.clone());
            taken.push(Delivery { tag: self.tags, redelivered, message: Ok(message), dead_letter: None, user: None });
        }
        taken
    }

    /// Forgets a message as if it had never arrived.
    pub(crate) fn drop_silently(&mut self, tag: u64) {
        if self.unsettled.remove(&tag).is_some() {
            self.world.broker.lock().under_way -= 1;
        }
    }

    /// Forgets what was accepted, and puts back what was not.
    pub(crate) fn settle(&mut self, settled: &[(u64, Settlement)]) {
        for (tag, settlement) in settled {
            let Some(message) = self.unsettled.remove(tag) else { continue };
            match settlement {
                Settlement::Accept => {
                    let mut queues = self.world.broker.lock();
                    queues.under_way -= 1;
                    let at = self.world.env.now();
                    queues.settled.entry((self.topic.clone(), message.id)).or_insert((at, message));
                }
                Settlement::Reject => self.world.broker.put(Waiting { message, redelivered: true }),
            }
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        for message in std::mem::take(&mut self.unsettled).into_values() {
            self.world.broker.put(Waiting { message, redelivered: true });
        }
    }
}
