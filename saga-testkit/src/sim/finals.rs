//! How everything stands in the end, as the store tells it.

use saga_core::Key;
use saga_core::memory::MemoryStore;
use saga_core::store::{HistoryKind, Outbox, RecordedOutcome, SagaFilter, SagaWithSteps, Sagas, Status, StepRecord};

use super::Scenario;
use super::client::tenant_of;
use super::definitions::SimDefinition;
use super::steps::{SimInput, SimOutput};
use crate::checker::{Final, Op, RecordSeen, Recorded, Rest, SagaPlan, Standing};

/// How many rows are looked at.
const LIMIT: usize = 1_000;

/// The plans of the scenario, as the checker wants them.
pub(crate) fn plans(scenario: &Scenario, definitions: &[SimDefinition]) -> Vec<SagaPlan> {
    let plans = scenario.sagas.iter().map(|script| SagaPlan {
        tenant: script.tenant.to_owned(),
        key: script.key.clone(),
        variants: script.variants.iter().map(|definition| definitions[*definition].variant.clone()).collect(),
    });
    plans.collect()
}

/// Whether every saga that was started has ended, nothing is left to send, and no message is parked.
pub(crate) async fn is_quiet(store: &MemoryStore, scenario: &Scenario) -> bool {
    for script in &scenario.sagas {
        let ended = stored(store, script.tenant, &script.key).await;
        if !ended.is_some_and(|stored| stored.saga.status.is_ended() && stored.work.is_empty()) {
            return false;
        }
    }
    store.depth().await.is_ok_and(|depth| depth.rows == 0)
}

/// How the sagas stand, and what else there is.
pub(crate) async fn finals(store: &MemoryStore, scenario: &Scenario) -> (Vec<Final>, Rest) {
    let mut finals = Vec::new();
    let mut rest = Rest::default();
    let mut known = 0;
    for script in &scenario.sagas {
        let stored = stored(store, script.tenant, &script.key).await;
        known += u64::from(stored.is_some());
        let is_ended = stored.as_ref().is_some_and(|stored| stored.saga.status.is_ended());
        rest.work_of_ended += stored.as_ref().filter(|_| is_ended).map_or(0, |stored| stored.work.len() as u64);
        finals.push(stored.map_or(ABSENT, |stored| final_of(&stored)));
    }
    rest.outbox = store.depth().await.map_or(u64::MAX, |depth| depth.rows);
    rest.forgotten = store.forgotten(LIMIT).await.map_or(u64::MAX, |forgotten| forgotten.len() as u64);
    let mut tenants: Vec<_> = scenario.sagas.iter().map(|script| script.tenant).collect();
    tenants.sort_unstable();
    tenants.dedup();
    for tenant in tenants {
        let filter = SagaFilter { tenant: tenant_of(tenant), limit: LIMIT, ..SagaFilter::default() };
        rest.strangers += store.list(&filter).await.map_or(u64::MAX / 2, |sagas| sagas.len() as u64);
    }
    rest.strangers = rest.strangers.saturating_sub(known);
    (finals, rest)
}

const ABSENT: Final = Final { standing: Standing::Absent, variant: None, records: Vec::new() };

async fn stored(store: &MemoryStore, tenant: &str, key: &str) -> Option<SagaWithSteps> {
    let key = Key::new(key).ok()?;
    store.saga_with_steps(&tenant_of(tenant), &key).await.ok().flatten()
}

fn final_of(stored: &SagaWithSteps) -> Final {
    let input: Option<SimInput> = serde_json::from_slice(&stored.saga.input).ok();
    Final {
        standing: match stored.saga.status {
            Status::Completed => Standing::Completed,
            Status::Compensated => Standing::Compensated,
            Status::Stuck => Standing::Stuck,
            Status::Running | Status::Compensating => Standing::Unfinished,
        },
        variant: input.map(|input| input.variant),
        records: stored.records.iter().filter_map(|record| record_of(stored, record)).collect(),
    }
}

fn record_of(stored: &SagaWithSteps, record: &StepRecord) -> Option<RecordSeen> {
    // The place of a step stands behind its name.
    let step = record.step.step().rsplit_once('-')?.1.parse().ok()?;
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
