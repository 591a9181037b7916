use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use saga_core::env::Environment;
use saga_core::store::MessageId;
use saga_core::transport::{Message, MessageKind};

use super::broker::Broker;
use super::fault::{Fault, Hits};
use super::lock_log::LockLog;
use super::outside::Outside;
use super::purge_log::{PurgeLog, saga_in};
use super::recorder::Recorder;
use super::report_log::ReportLog;
use crate::checker::{Age, Op, Sent, What};
use crate::sim::executor::{Control, ProcessId, SimEnvironment};
use crate::sim::sagas::{SERVICES, outermost, place_of};
use crate::sim::schedule::{Random, Rates, Scenario};

/// What surrounds the engine: the service outside, the faults, and the ledger.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) control: Control,
    /// The environment of the world: what is spawned here outlives every process.
    pub(crate) env: SimEnvironment,
    pub(crate) recorder: Recorder,
    pub(crate) outside: Outside,
    pub(crate) report_log: ReportLog,
    pub(crate) broker: Broker,
    pub(crate) purges: PurgeLog,
    pub(crate) locks: LockLog,
    pub(crate) hits: Hits,
    pub(crate) scenario: Scenario,
    /// Faults that may make the engine run something once more without counting it.
    random: Mutex<Random>,
    is_calm: AtomicBool,
    /// Until when the store of each service cannot be reached.
    store_down_until: [AtomicU64; SERVICES.len() + 1],
    /// What the sagas began with that were started instead of others.
    restarted: Mutex<BTreeMap<u32, (String, Vec<u8>)>>,
    /// The sagas of others of which they were told that nothing stands.
    foreign_ended: Mutex<BTreeSet<u32>>,
    /// Which handler was called in which transaction: its number, the saga, the step, whether it was undone.
    called: Mutex<BTreeSet<(u64, u32, u8, Op)>>,
    /// The processes that do not reach their store.
    cut_off: Mutex<BTreeSet<ProcessId>>,
    /// The events that the broker has accepted.
    delivered: Mutex<BTreeSet<(u64, u8)>>,
    /// The sagas that commands and undos are about, by the ids of these messages: two sagas may have one key.
    asked_for: Mutex<BTreeMap<MessageId, u32>>,
    /// Whether a message was lost that tells a host that sagas are closed.
    is_closed_lost: AtomicBool,
    is_purging_over: AtomicBool,
}

impl World {
    pub(crate) fn new(
        env: SimEnvironment,
        control: Control,
        (recorder, purges): (Recorder, PurgeLog),
        scenario: Scenario,
    ) -> Self {
        let random = Mutex::new(Random::new(scenario.seed ^ 0x0077_6f72_6c64));
        Self {
            control,
            env,
            recorder,
            outside: Outside::default(),
            report_log: ReportLog::default(),
            broker: Broker::default(),
            purges,
            locks: LockLog::default(),
            hits: Hits::new(),
            scenario,
            random,
            is_calm: AtomicBool::new(false),
            store_down_until: Default::default(),
            restarted: Mutex::default(),
            foreign_ended: Mutex::default(),
            called: Mutex::default(),
            cut_off: Mutex::default(),
            delivered: Mutex::default(),
            asked_for: Mutex::default(),
            is_closed_lost: AtomicBool::new(false),
            is_purging_over: AtomicBool::new(false),
        }
    }

    /// Whether this happens now. In the calm nothing does.
    pub(crate) fn happens(&self, rate: impl FnOnce(&Rates) -> u32) -> bool {
        let rate = rate(&self.scenario.rates);
        rate > 0 && !self.is_calm() && self.draw(|random| random.per_mille(rate))
    }

    pub(crate) fn draw<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut self.random.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes a fault, and writes nothing into the ledger.
    pub(crate) fn hit(&self, fault: Fault) {
        self.hits.hit(fault);
    }

    /// Notes a fault, if it happened.
    pub(crate) fn hit_if(&self, has_happened: bool, fault: Fault) {
        if has_happened {
            self.hit(fault);
        }
    }

    /// Writes an entry of the world.
    pub(crate) fn enter(&self, what: What) {
        self.recorder.enter(self.env.process(), what);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    /// From now on nothing is disturbed any more.
    pub(crate) fn calm_down(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
        self.store_down_until.iter().for_each(|until| until.store(0, Ordering::Relaxed));
        self.enter(What::FaultsEnded);
    }

    pub(crate) fn take_store_down(&self, service: u8, duration: Duration) {
        let until = self.control.now() + duration;
        self.store_down_until[usize::from(service)].store(until.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn is_store_down(&self, service: u8) -> bool {
        u128::from(self.store_down_until[usize::from(service)].load(Ordering::Relaxed)) > self.control.now().as_nanos()
    }

    pub(crate) fn set_cut_off(&self, process: ProcessId, is_cut_off: bool) {
        let mut cut_off = self.cut_off.lock().unwrap_or_else(PoisonError::into_inner);
        if is_cut_off {
            cut_off.insert(process);
        } else {
            cut_off.remove(&process);
        }
    }

    pub(crate) fn is_cut_off(&self, process: ProcessId) -> bool {
        self.cut_off.lock().unwrap_or_else(PoisonError::into_inner).contains(&process)
    }

    /// Notes what a saga began with that was started instead of another one.
    pub(crate) fn note_restart(&self, saga: u32, from: (String, Vec<u8>)) {
        self.restarted.lock().unwrap_or_else(PoisonError::into_inner).insert(saga, from);
    }

    /// What a saga began with, if it was started instead of another one.
    pub(crate) fn restarted(&self, saga: u32) -> Option<(String, Vec<u8>)> {
        self.restarted.lock().unwrap_or_else(PoisonError::into_inner).get(&saga).cloned()
    }

    /// Notes that the external client was told that nothing of that saga stands.
    pub(crate) fn end_foreign(&self, saga: u32) {
        self.foreign_ended.lock().unwrap_or_else(PoisonError::into_inner).insert(saga);
    }

    /// Whether the external client was told that nothing of that saga stands.
    pub(crate) fn has_ended_foreign(&self, saga: u32) -> bool {
        self.foreign_ended.lock().unwrap_or_else(PoisonError::into_inner).contains(&saga)
    }

    /// Notes that the broker accepted an event; answers whether it was the first time.
    pub(crate) fn note_delivery(&self, event: (u64, u8)) -> bool {
        self.delivered.lock().unwrap_or_else(PoisonError::into_inner).insert(event)
    }

    /// Notes that this transaction calls the handler of that saga's step; answers whether it is the first time.
    pub(crate) fn is_first_call(&self, call: (u64, u32, u8, Op)) -> bool {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).insert(call)
    }

    /// Writes down what was purged since it was last asked.
    pub(crate) async fn enter_purges(&self) {
        for entry in self.purges.settle(self.control.now()).await {
            if let What::Purged { service, row, age, .. } = entry {
                self.hit(match (service, row, age) {
                    (0, u8::MAX, _) => Fault::SubPurged,
                    (0, _, Age::Tombstone) => Fault::TombstoneMade,
                    (0, _, Age::Deleted) => Fault::SagaDeleted,
                    _ => Fault::HostedPurged,
                });
            }
            self.enter(entry);
        }
    }

    /// From now on no client waits for a key to be forgotten.
    pub(crate) fn end_purging(&self) {
        self.is_purging_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_purging_over(&self) -> bool {
        self.is_purging_over.load(Ordering::Relaxed)
    }

    /// Notes that a host may learn late that a saga is closed: only when it asks.
    pub(crate) fn lose_closed(&self) {
        self.is_closed_lost.store(true, Ordering::Relaxed);
    }

    /// Whether that may be so: the message was lost, or a process took it that does not know all steps of its service.
    pub(crate) fn is_closed_lost(&self) -> bool {
        self.is_closed_lost.load(Ordering::Relaxed) || self.has_ignorant()
    }

    /// Whether there are processes that do not know all steps of their service.
    pub(crate) fn has_ignorant(&self) -> bool {
        self.scenario.rates.ignorant > 0
    }

    /// The key under which the service outside knows a call of that saga. It remembers keys for less long than sagas are kept,
    /// so that a saga whose key is used again is another one to it.
    pub(crate) fn outside_key(&self, saga: u32, key: &str) -> String {
        let is_reborn = self.scenario.sagas.get(saga as usize).is_some_and(|script| script.reborn_of.is_some());
        if is_reborn { format!("{key} of saga #{saga}") } else { key.to_owned() }
    }

    /// Whether a saga is the one that has its key now, of those that have it one after the other.
    pub(crate) fn has_its_key(&self, saga: u32) -> bool {
        let sagas = &self.scenario.sagas;
        let is_deleted = |saga: u32| self.purges.age(saga) == Some(Age::Deleted);
        let before = sagas[saga as usize].reborn_of;
        before.is_none_or(is_deleted)
            && !(is_deleted(saga) && sagas.iter().any(|script| script.reborn_of == Some(saga)))
    }

    /// The saga that a message is about. Where several have its key, its input says which, and a reply is about what it answers.
    fn saga_of(&self, message: &Message) -> Option<usize> {
        let headers = &message.headers;
        let key = headers.saga_key.as_deref().map(outermost);
        let is_saga = |script: &crate::sim::schedule::SagaScript| {
            script.tenant == message.tenant.as_str() && Some(script.key.as_str()) == key
        };
        let first = self.scenario.sagas.iter().position(is_saga);
        if self.scenario.retention.is_none() {
            return first;
        }
        let mut asked_for = self.asked_for.lock().unwrap_or_else(PoisonError::into_inner);
        let by_input = input_of(message).and_then(|input| saga_in(input.as_bytes()));
        if let Some(saga) = by_input {
            asked_for.insert(message.id, saga);
        }
        let known = by_input.or_else(|| asked_for.get(&headers.correlation?).copied());
        known
            .map_or(first, |saga| first.filter(|_| is_saga(&self.scenario.sagas[saga as usize])).map(|_| saga as usize))
    }

    /// Waits for a drawn time of at most `max`.
    pub(crate) async fn wait_up_to(&self, max: Duration) {
        let nanos = self.draw(|random| random.below(max.as_nanos() as u64));
        self.env.sleep(Duration::from_nanos(nanos)).await;
    }
}

/// The world as one process meets it. It is the state that the step functions of that process get.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    pub(crate) world: Arc<World>,
    pub(crate) process: ProcessId,
    /// The number of the service that the process belongs to.
    pub(crate) service: u8,
}

impl Seat {
    /// Notes a fault after which the engine may run something again without counting an attempt.
    pub(crate) fn hit_repeating(&self, fault: Fault) {
        self.world.hit(fault);
        self.enter(What::Repeated);
    }

    pub(crate) fn enter(&self, what: What) {
        self.world.recorder.enter(self.process, what);
    }

    /// Writes down a message between services that the broker has accepted.
    pub(crate) fn enter_sent(&self, message: &Message) {
        let headers = &message.headers;
        let kind = match message.kind {
            MessageKind::Command => Sent::Command,
            MessageKind::Undo => Sent::Undo,
            // Nothing rests on it.
            MessageKind::Report | MessageKind::Closed => return,
            _ => Sent::Reply,
        };
        let saga = self.world.saga_of(message);
        self.enter(What::Sent {
            message: message.id.to_string(),
            kind,
            saga: saga.map_or(u32::MAX, |saga| saga as u32),
            step: headers.step.as_deref().and_then(place_of).unwrap_or(u8::MAX),
            asked: headers.correlation.map(|asked| asked.to_string()),
            input: input_of(message),
        });
    }
}

/// The input that a command or an undo brings, as it stands in the message.
pub(crate) fn input_of(message: &Message) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Undo<'a> {
        #[serde(borrow)]
        input: &'a serde_json::value::RawValue,
    }
    match message.kind {
        MessageKind::Command => String::from_utf8(message.payload.clone()).ok(),
        MessageKind::Undo => {
            serde_json::from_slice::<Undo<'_>>(&message.payload).ok().map(|undo| undo.input.get().to_owned())
        }
        _ => None,
    }
}
