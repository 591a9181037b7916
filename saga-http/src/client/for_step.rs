//! What the answer of another service means for a step.

use std::time::Duration;

use http::StatusCode;
use reqwest::{Error, Response, Url};
use saga_core::StepError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::retry_after::retry_after;

/// The longest body of an answer that is read as JSON.
const BODY_BYTES_MAX: usize = 8 * 1_024 * 1_024;
/// The longest body of a refusal that is read for its reason.
const REASON_BYTES_MAX: usize = 64 * 1_024;

/// Makes the error of a step of what `send` returned.
///
/// | answer | the step |
/// |---|---|
/// | 2xx | goes on with it |
/// | no connection | is retried; it certainly had no effect: [`StepError::not_sent`] |
/// | a time-out, or a connection that broke after that | is retried; it may have taken effect: [`StepError::retry`] |
/// | 408, 409, 425, 429, 5xx | is retried, no sooner than `Retry-After` says: [`StepError::retry_after`] |
/// | 401, 407 | is stuck, since only an operator can mend credentials: [`StepError::stuck`] |
/// | another 4xx, such as 422 | is rejected, and the saga compensates: [`StepError::reject`] |
/// | 3xx that the client does not follow, or a request that cannot be made | is stuck, since the program or its settings are wrong |
///
/// Build the client with `reqwest::redirect::Policy::none()`. A client that follows redirects may reach a service which does what it is
/// asked for, and then no connection to where that service sends it: the error says only that there was no connection, and the step
/// would count as not sent.
///
/// For the same reason, give the client no policy (`reqwest::ClientBuilder::retry`) that repeats a request which may have been sent:
/// the last attempt may find no connection although an earlier one took effect. The runtime repeats the step.
///
/// A service that uses keys answers 409 while the first request with the key is in progress, and 422 if another request had the key.
pub trait ForStep: Sized {
    /// The answer, if it is one of success. The reason of a rejection says which status the service answered.
    ///
    /// # Errors
    /// Those of the table above.
    ///
    /// # Examples
    /// That of [`StepRequest`](super::StepRequest).
    fn for_step(self) -> Result<Response, StepError>;

    /// The body of the answer, read as JSON, if it is one of success. The reason of a rejection is what the service says: the
    /// `detail` or the `title` of an `application/problem+json`, or the text of the body.
    ///
    /// # Errors
    /// Those of the table above. If the body breaks off or is not a `T`, the step is retried, since it has taken effect. A body of more
    /// than 8 MiB makes the step stuck.
    ///
    /// # Cancel safety
    /// When dropped, the service may have done what it was asked for; send the same key again.
    fn for_step_json<T: DeserializeOwned>(self) -> impl Future<Output = Result<T, StepError>> + Send
    where
        Self: Send;
}

impl ForStep for Result<Response, Error> {
    fn for_step(self) -> Result<Response, StepError> {
        let response = self.map_err(of_error)?;
        if response.status().is_success() { Ok(response) } else { Err(of_refusal(&response, None)) }
    }

    async fn for_step_json<T: DeserializeOwned>(self) -> Result<T, StepError> {
        let response = self.map_err(of_error)?;
        if response.status().is_success() {
            return body_of(response).await;
        }
        let mut response = response;
        let reason = reason(&mut response).await;
        Err(of_refusal(&response, reason))
    }
}

/// The request had no answer.
pub(super) fn of_error(error: Error) -> StepError {
    let error = without_query(error);
    if error.is_builder() {
        return StepError::stuck(format!("the request cannot be made: {}", StepError::retry(error)));
    }
    if error.is_connect() { StepError::not_sent(error) } else { StepError::retry(error) }
}

/// The answer is not one of success.
fn of_refusal(response: &Response, reason: Option<String>) -> StepError {
    let status = response.status();
    let answered = format!("{} answered {status}", address(response.url()));
    let said = reason.as_ref().map_or_else(|| answered.clone(), |reason| format!("{answered}: {reason}"));
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => {
            retry(response, said)
        }
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            StepError::stuck(format!("{said}; mend the credentials, and retry the step"))
        }
        // What the service says is about the business, and is shown to those who look at the saga.
        status if status.is_client_error() => StepError::reject(reason.unwrap_or(said)),
        status if status.is_server_error() => retry(response, said),
        _ => StepError::stuck(format!("{said}, which the client does not follow; call the right address")),
    }
}

fn retry(response: &Response, said: String) -> StepError {
    let delay = retry_after(response.headers()).unwrap_or(Duration::ZERO);
    StepError::retry_after(delay, said)
}

/// The body of an answer of success.
async fn body_of<T: DeserializeOwned>(mut response: Response) -> Result<T, StepError> {
    let address = address(response.url());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| StepError::retry(without_query(error)))? {
        body.extend_from_slice(&chunk);
        if body.len() > BODY_BYTES_MAX {
            let detail = format!("the answer of {address} is longer than {BODY_BYTES_MAX} bytes");
            return Err(StepError::stuck(format!("{detail}; read it with `for_step` and a limit of your own")));
        }
    }
    let read = serde_json::from_slice(&body);
    read.map_err(|error| StepError::retry(format!("the answer of {address} cannot be read: {error}")))
}

/// What the service says about a refusal.
async fn reason(response: &mut Response) -> Option<String> {
    let mut body = Vec::new();
    while body.len() < REASON_BYTES_MAX {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        body.extend_from_slice(&chunk);
    }
    body.truncate(REASON_BYTES_MAX);
    let text = String::from_utf8_lossy(&body);
    let problem: Said = serde_json::from_str(&text).unwrap_or_default();
    let said = problem.detail.or(problem.title).unwrap_or_else(|| text.trim().to_owned());
    (!said.is_empty()).then_some(said)
}

/// The members of a problem that are for people.
#[derive(Default, Deserialize)]
struct Said {
    detail: Option<String>,
    title: Option<String>,
}

/// The address without its query, which may contain a secret.
fn address(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

/// The same error, whose text does not contain the query of the address.
fn without_query(mut error: Error) -> Error {
    if let Some(url) = error.url_mut() {
        url.set_query(None);
    }
    error
}
