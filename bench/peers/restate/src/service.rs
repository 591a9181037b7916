//! The service that the server calls.

use peer_harness::Business;
use peer_harness::work::{Order, Step};
use restate_sdk::prelude::*;

/// Places orders.
#[derive(Debug)]
pub(crate) struct Orders {
    /// What the steps write with.
    pub(crate) business: Business,
}

#[service]
impl Orders {
    /// One saga: whether the order was confirmed; if not, it was undone.
    #[handler]
    async fn place(&self, context: Context<'_>, Json(order): Json<Order>) -> Result<Json<bool>, HandlerError> {
        context.run(|| self.write(Step::Reserve, order)).name("reserve").await?;
        context.run(|| self.write(Step::Charge, order)).name("charge").await?;
        // What is not terminal is tried again and never comes back here.
        if context.run(|| self.confirm(order)).name("confirm").await.is_ok() {
            return Ok(Json(true));
        }
        context.run(|| self.write(Step::Refund, order)).name("refund").await?;
        context.run(|| self.write(Step::Release, order)).name("release").await?;
        Ok(Json(false))
    }
}

impl Orders {
    async fn confirm(&self, order: Order) -> Result<(), HandlerError> {
        order.check().map_err(|declined| TerminalError::new(declined.to_string()))?;
        self.write(Step::Confirm, order).await
    }

    async fn write(&self, step: Step, order: Order) -> Result<(), HandlerError> {
        Ok(self.business.write(step, &order).await?)
    }
}
