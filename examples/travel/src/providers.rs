//! Calls of the companies outside: airlines, the insurer of cars, and a mail server.
//!
//! Each call has the key of its step, so that a company does once what it is asked for twice. What an answer means for the step is
//! decided by `for_step`.

use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use saga_core::{StepContext, StepError};
use saga_http::{ForStep as _, StepRequest as _};
use serde::{Deserialize, Serialize};

use crate::trip::Leg;

/// What the airline books.
pub const FLIGHTS: &str = "flights";
/// What the insurer books.
pub const POLICIES: &str = "policies";
/// What the mail server sends. It drops a mail whose key it has seen.
pub const MAILS: &str = "mails";

/// A ticket for a flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    pub number: String,
    pub cents: i64,
}

/// The companies as the steps see them.
#[derive(Debug, Clone)]
pub struct Providers {
    client: Client,
    address: Url,
}

impl Providers {
    /// All companies are at one address. Where a redirect would lead elsewhere, "no connection" would not mean "not booked".
    pub fn at(address: Url) -> reqwest::Result<Self> {
        Ok(Self { client: Client::builder().redirect(Policy::none()).build()?, address })
    }

    /// Books a flight.
    pub async fn book_flight(&self, ctx: &StepContext, leg: &Leg) -> Result<Ticket, StepError> {
        self.client.post(self.url(&[FLIGHTS])?).step_key(ctx).json(leg).send().await.for_step_json().await
    }

    /// The ticket that was booked with the key of this step.
    pub async fn find_flight(&self, ctx: &StepContext) -> Result<Option<Ticket>, StepError> {
        let found = self.client.get(self.url(&[FLIGHTS, ctx.key()])?).send().await;
        if found.as_ref().is_ok_and(|found| found.status() == StatusCode::NOT_FOUND) {
            return Ok(None);
        }
        found.for_step_json().await.map(Some)
    }

    /// Books a policy or sends a mail.
    pub async fn book(&self, what: &str, ctx: &StepContext) -> Result<(), StepError> {
        self.client.post(self.url(&[what])?).step_key(ctx).send().await.for_step().map(ignore)
    }

    /// Undoes what was booked with the key of the step that is compensated, and blocks the key.
    pub async fn cancel(&self, what: &str, ctx: &StepContext) -> Result<(), StepError> {
        self.client.delete(self.url(&[what, ctx.original_key()])?).step_key(ctx).send().await.for_step().map(ignore)
    }

    fn url(&self, path: &[&str]) -> Result<Url, StepError> {
        let mut url = self.address.clone();
        let refused = |()| StepError::stuck(format!("{} is no address of a server", self.address));
        url.path_segments_mut().map_err(refused)?.pop_if_empty().extend(path);
        Ok(url)
    }
}

fn ignore(_answer: Response) {}
