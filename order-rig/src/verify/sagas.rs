use std::{collections::HashSet, sync::Arc};

use anyhow::Context as _;
use saga_core::{
    StepPhase,
    engine::{SagaAdmin, SagaQuery},
    store::{RecordedOutcome, SagaFilter, SagaRow, Status, Store},
};
use tokio::task::JoinSet;

use crate::{
    archive::ArchivedSaga,
    orders::Order,
    saga::{CREATE_ORDER, create_order, create_order_across_services},
};

/// How many sagas are read at a time.
const PAGE: usize = 1_000;
/// How many of them are asked for their steps at once.
const AT_ONCE: usize = 16;

/// What the runtime says of one order.
#[derive(Debug)]
pub struct OrderSaga {
    pub(super) key: String,
    pub(super) status: Status,
    /// What it was started with.
    pub(super) order: Order,
    pub(super) steps: Vec<SagaStep>,
}

/// Where one of its steps stands, and whether that was recorded.
#[derive(Debug)]
pub(super) struct SagaStep {
    pub(super) name: String,
    pub(super) phase: StepPhase,
    pub(super) is_recorded: bool,
    pub(super) is_undo_recorded: bool,
}

impl OrderSaga {
    /// All sagas of orders: those that the store has in full, and those that were archived before they were purged.
    pub async fn all<S: Store<Conn: saga_sql::SqlConn> + Clone>(
        store: &S,
        archived: Vec<ArchivedSaga>,
    ) -> anyhow::Result<Vec<Self>> {
        let mut sagas = Self::stored(store).await?;
        let known: HashSet<String> = sagas.iter().map(|saga| saga.key.clone()).collect();
        let archived = ArchivedSaga::latest(archived).into_iter();
        for saga in archived.filter(|saga| saga.saga == CREATE_ORDER && !known.contains(&saga.key)) {
            sagas.push(Self::of_archived(&saga)?);
        }
        Ok(sagas)
    }

    async fn stored<S: Store<Conn: saga_sql::SqlConn> + Clone>(store: &S) -> anyhow::Result<Vec<Self>> {
        let inspector =
            SagaAdmin::new(store.clone()).saga(&create_order()?).saga(&create_order_across_services()?).query();
        let inspector = Arc::new(inspector);
        let mut filter = SagaFilter { limit: PAGE, ..SagaFilter::default() };
        let (mut sagas, mut asked) = (Vec::new(), JoinSet::new());
        loop {
            let rows = store.list(&filter).await?;
            let is_last = rows.len() < PAGE;
            filter.after = rows.last().map(|row| row.id).or(filter.after);
            for row in rows.into_iter().filter(|row| &*row.definition.name == CREATE_ORDER && !row.is_tombstone()) {
                if asked.len() >= AT_ONCE {
                    sagas.extend(asked.join_next().await.transpose()?.transpose()?.flatten());
                }
                let inspector = Arc::clone(&inspector);
                asked.spawn(async move { Self::of(&inspector, row).await });
            }
            if is_last {
                break;
            }
        }
        while let Some(saga) = asked.join_next().await {
            sagas.extend(saga??);
        }
        Ok(sagas)
    }

    async fn of<S: Store>(inspector: &SagaQuery<S>, row: SagaRow) -> anyhow::Result<Option<Self>> {
        let key = row.key.to_string();
        let order = serde_json::from_slice(&row.input).with_context(|| format!("the input of {key} is no order"))?;
        let Some(status) = inspector.status(&key).await? else { return Ok(None) };
        let step = |step: saga_core::engine::StepStatus| SagaStep {
            phase: step.phase,
            is_recorded: step.recorded_at.is_some(),
            is_undo_recorded: step.undone_at.is_some(),
            name: step.step,
        };
        let steps = status.steps.into_iter().map(step).collect();
        Ok(Some(Self { key, status: status.summary.status, order, steps }))
    }

    fn of_archived(saga: &ArchivedSaga) -> anyhow::Result<Self> {
        let key = saga.key.clone();
        let order = serde_json::from_value(saga.input.clone());
        let order = order.with_context(|| format!("the archived input of {key} is no order"))?;
        let mut steps: Vec<SagaStep> = Vec::new();
        for record in &saga.records {
            let (name, is_undo, outcome) = (record.step().to_owned(), record.is_undo(), record.outcome()?);
            let phase = if is_undo { StepPhase::Undone } else { phase_of(outcome) };
            match steps.iter_mut().find(|step| step.name == name) {
                Some(step) => {
                    step.phase = phase;
                    step.is_undo_recorded |= is_undo;
                }
                None => steps.push(SagaStep { name, phase, is_recorded: !is_undo, is_undo_recorded: is_undo }),
            }
        }
        Ok(Self { key, status: saga.status()?, order, steps })
    }

    pub(super) fn phase(&self, step: &str) -> Option<StepPhase> {
        self.steps.iter().find(|at| at.name == step).map(|at| at.phase)
    }
}

/// The phase of a step that was recorded so, and not undone.
fn phase_of(outcome: RecordedOutcome) -> StepPhase {
    match outcome {
        RecordedOutcome::Done => StepPhase::Done,
        RecordedOutcome::Rejected => StepPhase::Rejected,
        RecordedOutcome::Unknown => StepPhase::Unknown,
        _ => StepPhase::Failed,
    }
}
