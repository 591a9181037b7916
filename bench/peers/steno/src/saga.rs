//! The saga of an order: its actions, their undos, and how it is run.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use peer_harness::Business;
use peer_harness::work::{Declined, Order, Step};
use steno::{
    Action, ActionContext, ActionError, ActionFunc, ActionRegistry, DagBuilder, Node, SagaDag, SagaId, SagaInit,
    SagaType, SecClient, SecStore,
};

/// Runs sagas of orders.
#[derive(Debug)]
pub(crate) struct Orders {
    coordinator: SecClient,
    business: Arc<Business>,
    actions: Actions,
    registry: Arc<ActionRegistry<OrderSaga>>,
}

/// The types that steno asks for: an action's context is what it writes with.
#[derive(Debug)]
struct OrderSaga;

impl SagaType for OrderSaga {
    type ExecContextType = Business;
}

#[derive(Debug)]
struct Actions {
    reserve: Arc<dyn Action<OrderSaga>>,
    charge: Arc<dyn Action<OrderSaga>>,
    confirm: Arc<dyn Action<OrderSaga>>,
}

impl Orders {
    /// A coordinator that logs to `store`.
    pub(crate) fn new(store: Arc<dyn SecStore>, business: Business) -> Self {
        let actions = Actions {
            reserve: ActionFunc::new_action("reserve", reserve, release),
            charge: ActionFunc::new_action("charge", charge, refund),
            confirm: steno::new_action_noop_undo("confirm", confirm),
        };
        let mut registry = ActionRegistry::new();
        for action in [&actions.reserve, &actions.charge, &actions.confirm] {
            registry.register(Arc::clone(action));
        }
        let log = slog::Logger::root(slog::Discard, slog::o!());
        Self {
            coordinator: steno::sec(log, store),
            business: Arc::new(business),
            actions,
            registry: Arc::new(registry),
        }
    }

    /// Runs the saga of one order, and says whether it was confirmed; if not, it was undone.
    pub(crate) async fn place(&self, order: Order) -> Result<bool> {
        let (id, graph) = (SagaId::new_v4(), self.graph(order)?);
        let (business, registry) = (Arc::clone(&self.business), Arc::clone(&self.registry));
        let ended = self.coordinator.saga_create(id, business, graph, registry).await?;
        self.coordinator.saga_start(id).await?;
        let Err(failure) = ended.await.kind else { return Ok(true) };
        if let Some((node, error)) = failure.undo_failure {
            bail!("the undo of {node:?} failed: {error}");
        }
        match failure.error_source {
            ActionError::ActionFailed { source_error } if is_declined(&source_error) => Ok(false),
            other => bail!("the action {:?} failed: {other}", failure.error_node_name),
        }
    }

    fn graph(&self, order: Order) -> Result<Arc<SagaDag>> {
        let mut builder = DagBuilder::new(SagaInit::new("order"));
        builder.append(Node::action("reserved", "Reserve", self.actions.reserve.as_ref()));
        builder.append(Node::action("charged", "Charge", self.actions.charge.as_ref()));
        builder.append(Node::action("confirmed", "Confirm", self.actions.confirm.as_ref()));
        let graph = builder.build().context("the graph of the saga is invalid")?;
        Ok(Arc::new(SagaDag::new(graph, serde_json::to_value(order)?)))
    }
}

type Acting = ActionContext<OrderSaga>;

async fn reserve(context: Acting) -> Result<(), ActionError> {
    act(&context, Step::Reserve).await
}

async fn charge(context: Acting) -> Result<(), ActionError> {
    act(&context, Step::Charge).await
}

async fn confirm(context: Acting) -> Result<(), ActionError> {
    context.saga_params::<Order>()?.check().map_err(ActionError::action_failed)?;
    act(&context, Step::Confirm).await
}

async fn refund(context: Acting) -> Result<()> {
    undo(&context, Step::Refund).await
}

async fn release(context: Acting) -> Result<()> {
    undo(&context, Step::Release).await
}

async fn act(context: &Acting, step: Step) -> Result<(), ActionError> {
    let order = context.saga_params::<Order>()?;
    context.user_data().write(step, &order).await.map_err(|error| ActionError::action_failed(error.to_string()))
}

async fn undo(context: &Acting, step: Step) -> Result<()> {
    let order = context.saga_params::<Order>()?;
    Ok(context.user_data().write(step, &order).await?)
}

fn is_declined(error: &serde_json::Value) -> bool {
    serde_json::from_value::<Declined>(error.clone()).is_ok()
}
