//! Signs messages and hands them to the transport.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::context::EngineContext;
use crate::engine::health::panicked;
use crate::env::{Activity, during};
use crate::store::{Message, OutboxRow, Store};
use crate::transport::{TransportError, TransportErrorKind};
use crate::unwind::caught_while;

/// Whether the results say that the transport is down. Refused messages do not say so: all of them may be for one full queue.
pub(crate) fn met_outage(results: &[Result<(), TransportError>]) -> bool {
    let kinds = || results.iter().map(|result| result.as_ref().map_err(TransportError::kind));
    // A connection that breaks leaves messages with an unknown outcome.
    let is_silent = |kind| matches!(kind, Err(kind) if kind == TransportErrorKind::Unknown || is_outage(kind));
    kinds().all(is_silent) && kinds().any(|kind| kind.is_err_and(is_outage))
}

pub(crate) fn is_outage(kind: TransportErrorKind) -> bool {
    matches!(kind, TransportErrorKind::Unavailable | TransportErrorKind::Closed)
}

fn no_answer(limit: Duration) -> TransportError {
    TransportError::new(TransportErrorKind::Unknown, "publish", format!("no confirmation within {limit:?}"))
}

/// Hands messages to the transport, signed, within the time limit.
pub(crate) struct Publisher<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
}

impl<S: Store> Publisher<S> {
    pub(crate) fn new(ctx: Arc<EngineContext<S>>) -> Self {
        Self { ctx }
    }
}

impl<S: Store> Publisher<S> {
    pub(crate) async fn publish(&self, rows: &[OutboxRow]) -> Vec<Result<(), TransportError>> {
        match self.publish_together(rows).await {
            Ok(results) => results,
            // Which message makes the transport panic is found one by one.
            Err(_) if rows.len() > 1 => {
                let mut results = Vec::with_capacity(rows.len());
                for row in rows {
                    let alone = self.publish_together(std::slice::from_ref(row)).await;
                    let alone = alone.map_or_else(|panic| Some(Err(panic)), |mut results| results.pop());
                    results.push(alone.unwrap_or_else(|| Err(no_answer(self.publish_timeout()))));
                }
                results
            }
            Err(panic) => vec![Err(panic)],
        }
    }

    /// One result for each row; an error if the transport panicked.
    async fn publish_together(&self, rows: &[OutboxRow]) -> Result<Vec<Result<(), TransportError>>, TransportError> {
        let messages = rows.iter().cloned().map(|row| self.ctx.authorizer.sign(Message::from(row))).collect();
        let limit = self.publish_timeout();
        let publishing = crate::env::timeout(&*self.ctx.env, limit, self.ctx.transport.publish(messages));
        let answered = caught_while(during(&*self.ctx.env, Activity::Store, publishing)).await;
        let answered = answered.map_err(|panic| panicked(TransportErrorKind::Unknown, "publish", &panic))?;
        let mut results = answered.unwrap_or_default();
        results.resize_with(rows.len(), || Err(no_answer(limit)));
        Ok(results)
    }

    pub(crate) fn publish_timeout(&self) -> Duration {
        self.ctx.settings.publish_timeout
    }
}
