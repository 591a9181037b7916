//! Requests of many callers share calls of Redis: what a call costs besides its requests is most of what a request costs.

use std::sync::Arc;
use std::time::Duration;

use saga_core::__private::Batches;

use super::holds::Holds;
use super::reply::Reply;
use super::scripts::RESERVE;
use crate::ReservationsError;
use crate::book::{Line, ReservationKey};

pub(super) const RESERVING: &str = "reserve";

/// The most requests of one call: Redis does nothing else meanwhile.
const REQUESTS_MAX: usize = 64;

/// The most calls at once: while Redis works on one, the answer to another is read.
const CALLS_MAX: usize = 2;

/// What is to be held. A clone is cheap.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) key: ReservationKey,
    pub(super) lines: Arc<[Line]>,
    pub(super) ttl: Duration,
    pub(super) is_unique: bool,
}

/// Requests that wait for the call before them. A request that is refused does not hinder the others of its call.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    holds: Arc<Holds>,
    batches: Batches<Request, Result<Reply, ReservationsError>>,
}

impl Requests {
    pub(super) fn to(holds: Arc<Holds>) -> Self {
        Self { holds, batches: Batches::new(REQUESTS_MAX, CALLS_MAX) }
    }

    /// Asks Redis for a hold.
    ///
    /// # Errors
    /// When Redis or the database does not answer. It is unknown whether it is held.
    pub(super) async fn hold(&self, request: Request) -> Result<Reply, ReservationsError> {
        self.batches.ask(request, |requests| self.call(requests)).await
    }

    async fn call(&self, requests: Vec<Request>) -> Vec<Result<Reply, ReservationsError>> {
        let arguments = requests.iter().flat_map(Request::arguments).collect();
        let keys = requests.iter().map(|request| &request.key);
        match self.holds.call_for_all(RESERVING, &RESERVE, keys, arguments).await.map_err(Arc::new) {
            Ok(replies) => replies.into_iter().map(Ok).collect(),
            Err(error) => {
                let unavailable = |_| Err(ReservationsError::unavailable(RESERVING, Arc::clone(&error)));
                requests.iter().map(unavailable).collect()
            }
        }
    }
}

impl Request {
    fn arguments(&self) -> impl Iterator<Item = String> {
        let first = [
            self.key.to_string(),
            self.ttl.as_micros().to_string(),
            u8::from(self.is_unique).to_string(),
            self.lines.len().to_string(),
        ];
        let lines = self.lines.iter().flat_map(|line| [line.resource.to_string(), line.quantity.to_string()]);
        first.into_iter().chain(lines)
    }
}
