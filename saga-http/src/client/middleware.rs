//! The same for the clients of `reqwest-middleware`.

use http::HeaderName;
use reqwest::Response;
use reqwest_middleware::{Error, RequestBuilder};
use saga_core::StepError;
use serde::de::DeserializeOwned;

use super::{ForStep, StepRequest};

impl StepRequest for RequestBuilder {
    fn with_header(self, name: HeaderName, value: &str) -> Self {
        self.header(name, value)
    }
}

/// An error of a middleware says nothing about the request, which may have taken effect.
impl ForStep for Result<Response, Error> {
    fn for_step(self) -> Result<Response, StepError> {
        of_reqwest(self)?.for_step()
    }

    async fn for_step_json<T: DeserializeOwned>(self) -> Result<T, StepError> {
        of_reqwest(self)?.for_step_json().await
    }
}

fn of_reqwest(sent: Result<Response, Error>) -> Result<Result<Response, reqwest::Error>, StepError> {
    match sent {
        Ok(response) => Ok(Ok(response)),
        Err(Error::Reqwest(error)) => Ok(Err(error)),
        Err(error @ Error::Middleware(_)) => Err(StepError::retry(error)),
    }
}
