use std::sync::Arc;

use anyhow::Context as _;
use saga_core::{
    StepPhase,
    engine::{SagaAdmin, SagaQuery},
    store::{SagaFilter, SagaRow, Status, Store},
};
use tokio::task::JoinSet;

use crate::{
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
    /// All sagas of orders.
    pub async fn all<S: Store<Conn: saga_sql::SqlConn> + Clone>(store: &S) -> anyhow::Result<Vec<Self>> {
        let inspector =
            SagaAdmin::new(store.clone()).saga(&create_order()?).saga(&create_order_across_services()?).query();
        let inspector = Arc::new(inspector);
        let mut filter = SagaFilter { limit: PAGE, ..SagaFilter::default() };
        let (mut sagas, mut asked) = (Vec::new(), JoinSet::new());
        loop {
            let rows = store.list(&filter).await?;
            let is_last = rows.len() < PAGE;
            filter.after = rows.last().map(|row| row.id).or(filter.after);
            for row in rows.into_iter().filter(|row| &*row.definition.name == CREATE_ORDER) {
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

    pub(super) fn phase(&self, step: &str) -> Option<StepPhase> {
        self.steps.iter().find(|at| at.name == step).map(|at| at.phase)
    }
}
