//! How everything stands in the end, as the store tells it.

use std::time::Duration;

use saga_core::env::Environment as _;
use saga_core::memory::MemoryStore;
use saga_core::store::{
    DeadLetter, DeadLetterFilter, DeadLetters, HistoryKind, Ids, Inbox, Message, MessageKind, NewReceived, Outbox,
    RecordedOutcome, SagaFilter, SagaWithSteps, Sagas, Status, StepRecord, Timestamp, Work, WorkId, service_topic,
};
use saga_core::{Key, Signal as _};

use crate::checker::{Age, ChosenSeen, Final, Op, RecordSeen, Recorded, Rest, SagaPlan, Standing};
use crate::sim::sagas::{
    CHOICES, HOME, ORIGIN_MICROS, SERVICES, SUB, SimDefinition, SimInput, SimOutput, SimSignal, hosted_key, place_of,
    tenant_of,
};
use crate::sim::schedule::Scenario;
use crate::sim::world::{World, saga_in};

/// How many rows are looked at.
const LIMIT: usize = 1_000;

/// The plans of the scenario, as the checker wants them.
pub(crate) fn plans(scenario: &Scenario, definitions: &[SimDefinition]) -> Vec<SagaPlan> {
    let plans = scenario.sagas.iter().map(|script| SagaPlan {
        tenant: script.tenant.to_owned(),
        key: script.key.clone(),
        is_taken_back: script.is_foreign,
        reborn_of: script.reborn_of,
        time: script.time,
        variants: script.variants.iter().map(|definition| definitions[*definition].variant.clone()).collect(),
    });
    plans.collect()
}

/// Whether every saga that was started has ended, nothing is left to send or to do, no message is parked or a dead letter,
/// and no hosted step is stuck. The sagas are in the first store.
pub(crate) async fn is_quiet(stores: &[MemoryStore], world: &World) -> bool {
    let scenario = &world.scenario;
    for (saga, script) in (0..).zip(&scenario.sagas) {
        if script.is_foreign {
            if !world.has_ended_foreign(saga) {
                return false;
            }
            continue;
        }
        let ended = stored(world, 0, saga, &script.key).await.map(|(stored, _)| stored);
        // A restart that was never made has no row, nor has a saga whose key was not free.
        if (script.restart_of.is_some() || script.reborn_of.is_some()) && ended.is_none() {
            continue;
        }
        let is_over = |stored: &SagaWithSteps| stored.saga.status.is_ended() && stored.work.is_empty();
        let sub = stored(world, 0, saga, &format!("{}>{SUB}", script.key)).await.map(|(stored, _)| stored);
        if !ended.is_some_and(|stored| is_over(&stored)) || sub.is_some_and(|sub| !is_over(&sub)) {
            return false;
        }
    }
    for store in stores {
        let is_empty = store.depth().await.is_ok_and(|depth| depth.rows == 0);
        if !is_empty || (stores.len() > 1 && !has_nothing_left(store, scenario).await) {
            return false;
        }
    }
    !is_any_stuck(&stores[1..], scenario).await
}

/// Whether a hosted step is stuck, also one of a saga that has ended: what an operator makes of it may reopen that saga.
async fn is_any_stuck(stores: &[MemoryStore], scenario: &Scenario) -> bool {
    for store in stores {
        for tenant in tenants(scenario) {
            let filter = SagaFilter { tenant: tenant_of(tenant), status: Some(Status::Stuck), ..SagaFilter::default() };
            if store.list(&filter).await.map_or(true, |stuck| !stuck.is_empty()) {
                return true;
            }
        }
    }
    false
}

async fn has_nothing_left(store: &MemoryStore, scenario: &Scenario) -> bool {
    store.backlog().await.is_ok_and(|(rows, _)| rows == 0) && open_letters(store, scenario).await == 0
}

async fn open_letters(store: &MemoryStore, scenario: &Scenario) -> u64 {
    let mut letters = 0;
    for tenant in tenants(scenario) {
        let filter = DeadLetterFilter { tenant: tenant_of(tenant), ..DeadLetterFilter::default() };
        letters += store.dead_letters(&filter).await.map_or(u64::MAX / 4, |letters| letters.len() as u64);
    }
    letters
}

fn tenants(scenario: &Scenario) -> Vec<&'static str> {
    let mut tenants: Vec<_> = scenario.sagas.iter().map(|script| script.tenant).collect();
    tenants.sort_unstable();
    tenants.dedup();
    tenants
}

/// How the sagas stand, and what else there is.
pub(crate) async fn finals(stores: &[MemoryStore], world: &World, plans: &[SagaPlan]) -> (Vec<Final>, Rest) {
    let scenario = &world.scenario;
    let mut finals = Vec::new();
    let mut rest = Rest::default();
    let mut known = 0;
    for (saga, (script, plan)) in (0..).zip(scenario.sagas.iter().zip(plans)) {
        let row = stored(world, 0, saga, &script.key).await;
        known += u64::from(row.as_ref().is_some_and(|(_, is_there)| *is_there));
        let row = row.map(|(stored, _)| stored);
        let is_ended = row.as_ref().is_some_and(|row| row.saga.status.is_ended());
        rest.work_of_ended += row.as_ref().filter(|_| is_ended).map_or(0, |row| row.work.len() as u64);
        let mut end = row.map_or(Final::ABSENT, |row| final_of(&row));
        if script.is_foreign {
            // The store has no row that says how it stands.
            let is_ended = world.has_ended_foreign(saga);
            end.standing = if is_ended { Standing::Compensated } else { Standing::Unfinished };
            end.variant = Some(0);
        }
        known += collect_sub(world, saga, plan, &mut end).await;
        let hosted = collect_hosted(stores, world, (saga, plan), &mut end).await;
        known += hosted;
        rest.hosted_left += u64::from(is_closed(world, saga)) * hosted;
        finals.push(end);
    }
    for store in stores {
        rest.outbox += store.depth().await.map_or(u64::MAX / 4, |depth| depth.rows);
        rest.forgotten += store.orphaned(LIMIT).await.map_or(u64::MAX / 4, |forgotten| forgotten.len() as u64);
        if stores.len() > 1 {
            rest.letters += open_letters(store, scenario).await;
            rest.work += store.backlog().await.map_or(u64::MAX / 4, |(rows, _)| rows);
        }
        for tenant in tenants(scenario) {
            let filter = SagaFilter { tenant: tenant_of(tenant), limit: LIMIT, ..SagaFilter::default() };
            rest.strangers += store.list(&filter).await.map_or(u64::MAX / 4, |sagas| sagas.len() as u64);
        }
    }
    rest.strangers = rest.strangers.saturating_sub(known);
    (finals, rest)
}

/// Adds the records of the saga that is a step; answers whether there is one.
async fn collect_sub(world: &World, saga: u32, plan: &SagaPlan, end: &mut Final) -> u64 {
    let Some((sub, is_there)) = stored(world, 0, saga, &format!("{}>{SUB}", plan.key)).await else { return 0 };
    end.records.extend(final_of(&sub).records);
    u64::from(is_there)
}

/// Whether every host has forgotten by now what it did for that saga: it was deleted, and hosts that were not told have asked.
fn is_closed(world: &World, saga: u32) -> bool {
    world.purges.age(saga) == Some(Age::Deleted) && !world.has_ignorant() && !world.purges.is_hosted_kept()
}

/// Puts the records of hosts in the place of those that the saga's own service has of their steps, which are kept beside
/// them; answers how many hosts know their step.
async fn collect_hosted(stores: &[MemoryStore], world: &World, (saga, plan): (u32, &SagaPlan), end: &mut Final) -> u64 {
    let Some(variant) = end.variant.and_then(|variant| plan.variants.get(usize::from(variant))) else { return 0 };
    let mut known = 0;
    for (place, step) in (0..).zip(&variant.steps) {
        let Some(host) = step.host else { continue };
        end.told.extend(end.records.extract_if(.., |record| record.step == place));
        // Where there are two services, the second hosts the steps of all.
        let service = usize::from(host).min(stores.len() - 1) as u8;
        let Some((hosted, is_there)) = stored(world, service, saga, &hosted_key(&plan.key, step)).await else {
            continue;
        };
        known += u64::from(is_there);
        // Its row there is of one step. Which item of a list that is stands in the key.
        end.records.extend(final_of(&hosted).records.into_iter().map(|record| RecordSeen { step: place, ..record }));
    }
    known
}

/// How many of these messages, each received from the queue of that service and acknowledged at that time, are known to
/// none of the stores that received for it.
pub(crate) async fn unknown_messages(
    stores: &[MemoryStore],
    world: &World,
    settled: Vec<(String, Duration, Message)>,
) -> u64 {
    let mut unknown = 0;
    for (topic, at, message) in settled {
        let mut services = std::iter::once(HOME).chain(SERVICES);
        // The external client keeps its messages elsewhere.
        let Some(service) = services.position(|name| service_topic(name) == topic) else { continue };
        let store = &stores[service.min(stores.len() - 1)];
        let is_known = has_taken_effect(store, world, at, &message).await || is_stored(store, message).await;
        unknown += u64::from(!is_known);
    }
    unknown
}

/// Whether what a message brings had taken effect when it was acknowledged: the step of a command has begun, and something
/// became of the step that a reply is about.
async fn has_taken_effect(store: &MemoryStore, world: &World, at: Duration, message: &Message) -> bool {
    let (Some(key), Some(step)) = (&message.headers.saga_key, &message.headers.step) else { return false };
    // The clocks of the services differ. It is asked at one moment of the world's time.
    let Ok(receipt) = store.receive(Vec::new()).await else { return false };
    let since = i64::try_from(world.env.now().saturating_sub(at).as_micros()).unwrap_or(i64::MAX);
    let at = Timestamp(receipt.now.0 - since);
    match message.kind {
        MessageKind::Command => {
            let hosted = stored_at(store, message.tenant.as_str(), &format!("{key}>{step}")).await;
            hosted.is_some_and(|hosted| hosted.saga.started_at <= at)
        }
        MessageKind::Reply => {
            let Some(of) = stored_at(store, message.tenant.as_str(), key).await else { return false };
            let is_over = of.saga.ended_at.is_some_and(|ended| ended <= at);
            let recorded = of.records.iter().filter(|record| record.recorded_at <= at).map(|record| &record.step);
            let noted =
                of.history.iter().filter(|(noted, _)| *noted <= at).filter_map(|(_, entry)| entry.step.as_ref());
            is_over || recorded.chain(noted).any(|known| known.step_and_item() == step)
        }
        // Nothing rests on a report, and the row that keeps it goes with its step.
        MessageKind::Report => true,
        _ => false,
    }
}

/// Whether a store has received a message or keeps it as a dead letter. It is asked in the only way that there is, which
/// leaves a row behind where the answer is no: nothing is asked of the store after that.
async fn is_stored(store: &MemoryStore, message: Message) -> bool {
    let filter =
        DeadLetterFilter { tenant: message.tenant.clone(), state: None, limit: LIMIT, ..DeadLetterFilter::default() };
    let letters = store.dead_letters(&filter).await.unwrap_or_default();
    let is_letter = |letter: &DeadLetter| letter.letter.message.as_ref().is_some_and(|kept| kept.id == message.id);
    if letters.iter().any(is_letter) {
        return true;
    }
    let Ok(ids) = store.reserve_ids(1).await else { return false };
    let received = NewReceived { work: WorkId(ids.start), message, lease: None };
    store.receive(vec![received]).await.is_ok_and(|receipt| receipt.new == [false])
}

/// The row of a saga of the scenario, or of a step of it, as it stands or stood before it was purged; and whether it is still there.
async fn stored(world: &World, service: u8, saga: u32, key: &str) -> Option<(SagaWithSteps, bool)> {
    let tenant = world.scenario.sagas[saga as usize].tenant;
    let row = stored_at(world.purges.store(service), tenant, key).await;
    if world.scenario.retention.is_none() {
        return row.map(|row| (row, true));
    }
    let is_own = |row: &SagaWithSteps| saga_in(&row.saga.input).is_none_or(|of| of == saga);
    let row = match row {
        Some(row) if !row.saga.is_tombstone() && is_own(&row) => return Some((row, true)),
        other => other,
    };
    let before = world.purges.before(service, &tenant_of(tenant), &Key::from_stored(key).ok()?, saga)?;
    let is_there = row.is_some_and(|row| row.saga.id == before.saga.id);
    Some((before, is_there))
}

async fn stored_at(store: &MemoryStore, tenant: &str, key: &str) -> Option<SagaWithSteps> {
    let key = Key::from_stored(key).ok()?;
    store.saga_with_steps(&tenant_of(tenant), &key).await.ok().flatten()
}

fn final_of(stored: &SagaWithSteps) -> Final {
    let input: Option<SimInput> = serde_json::from_slice(&stored.saga.input).ok();
    Final {
        standing: match stored.saga.status {
            Status::Completed => Standing::Completed,
            Status::Compensated => Standing::Compensated,
            Status::Stuck => Standing::Stuck,
            Status::Running | Status::Compensating | Status::Paused => Standing::Unfinished,
        },
        variant: input.map(|input| input.variant),
        records: stored.records.iter().filter_map(|record| record_of(stored, record)).collect(),
        told: Vec::new(),
        chosen: stored.records.iter().filter_map(chosen_of).collect(),
        signal: signal_of(stored),
        overdue_at: overdue_at(stored),
    }
}

fn chosen_of(record: &StepRecord) -> Option<ChosenSeen> {
    let choice = CHOICES.iter().find(|choice| **choice == record.step.as_str())?;
    let is_made = matches!(record.outcome, RecordedOutcome::Done | RecordedOutcome::Skipped);
    let arm = serde_json::from_slice::<Option<String>>(record.output.as_deref().filter(|_| is_made)?).ok()?;
    Some(ChosenSeen { choice: (*choice).to_owned(), arm })
}

/// What the step that waits for a word went on with.
fn signal_of(stored: &SagaWithSteps) -> Option<u64> {
    let record = stored.records.iter().find(|record| record.step.as_str() == SimSignal::NAME)?;
    let signal: SimSignal = serde_json::from_slice(record.output.as_deref()?).ok()?;
    Some(signal.id)
}

/// When the saga was called off for its deadline, in microseconds of the run: its store's clock began with it.
fn overdue_at(stored: &SagaWithSteps) -> Option<u64> {
    let (at, _) = stored.history.iter().find(|(_, entry)| entry.kind == HistoryKind::Deadline)?;
    Some(at.0.abs_diff(ORIGIN_MICROS))
}

fn record_of(stored: &SagaWithSteps, record: &StepRecord) -> Option<RecordSeen> {
    let is_of_list = |other: &StepRecord| other.step.step() == record.step.step() && other.step.item() == Some(0);
    if record.step.item().is_none() && stored.records.iter().any(is_of_list) {
        // It joins what the items gave.
        return None;
    }
    if CHOICES.contains(&record.step.as_str()) {
        return None;
    }
    let step = place_of(record.step.step_and_item())?;
    let output: Option<SimOutput> = record.output.as_deref().and_then(|output| serde_json::from_slice(output).ok());
    Some(RecordSeen {
        step,
        op: if record.step.undo_round().is_some() { Op::Undo } else { Op::Do },
        outcome: match record.outcome {
            RecordedOutcome::Done => Recorded::Done,
            RecordedOutcome::Unknown => Recorded::Unknown,
            RecordedOutcome::Skipped => Recorded::Skipped,
            RecordedOutcome::Rejected | RecordedOutcome::Failed | RecordedOutcome::Cancelled => Recorded::NotDone,
        },
        call: output.map(|output| output.call),
        is_late: stored
            .history
            .iter()
            .any(|(_, entry)| entry.kind == HistoryKind::Late && entry.step.as_ref() == Some(&record.step)),
        position: record.position,
    })
}
