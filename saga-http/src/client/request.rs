//! Requests with the key of a step.

use http::HeaderName;
use reqwest::RequestBuilder;
use saga_core::StepContext;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// No header has this value, so that a request with it cannot be made.
const NO_HEADER: &str = "\n";

/// A request that a step sends. It is implemented for the request builders of `reqwest` and, with the feature `middleware`, of
/// `reqwest-middleware`.
///
/// # Examples
/// A step that charges a card. However often it is tried, the gateway sees one key:
/// ```
/// use saga_core::{State, StepContext, StepError, saga_step};
/// use saga_http::{ForStep as _, StepRequest as _};
///
/// #[saga_step(no_compensation)]
/// async fn charge_card(ctx: &StepContext, cents: u64, State(client): State<reqwest::Client>) -> Result<String, StepError> {
///     let request = client.post("http://gateway.example/charges").step_key(ctx).json(&cents);
///     Ok(request.send().await.for_step()?.text().await?)
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = StepContext::for_test("order-7:charge-card");
/// let request = reqwest::Client::new().post("http://gateway.example/charges").step_key(&ctx).build()?;
/// assert_eq!(request.headers()["idempotency-key"], "\"order-7:charge-card\"");
/// # Ok(())
/// # }
/// ```
pub trait StepRequest: Sized {
    /// Sends the [key](StepContext::key) of this call as `Idempotency-Key`, a structured-field string, and the trace context of
    /// the saga as `traceparent` if it has one. All attempts of the step send the same key.
    #[must_use]
    fn step_key(self, ctx: &StepContext) -> Self {
        self.idempotency_key(ctx.key(), ctx)
    }

    /// The same for a step that makes several calls: the key is followed by `/` and this name, which differs in each of them.
    ///
    /// With a name that is not ASCII, the request cannot be sent.
    #[must_use]
    fn step_key_for(self, ctx: &StepContext, call: &str) -> Self {
        self.idempotency_key(&format!("{}/{call}", ctx.key()), ctx)
    }

    /// Sends this key, in a compensation for example the [key of the step](StepContext::original_key) that it undoes.
    #[must_use]
    fn idempotency_key(self, key: &str, ctx: &StepContext) -> Self {
        let request = self.with_header(IDEMPOTENCY_KEY, quoted(key).as_deref().unwrap_or(NO_HEADER));
        match ctx.traceparent() {
            Some(traceparent) => request.with_header(TRACEPARENT, traceparent),
            None => request,
        }
    }

    #[doc(hidden)]
    #[must_use]
    fn with_header(self, name: HeaderName, value: &str) -> Self;
}

impl StepRequest for RequestBuilder {
    fn with_header(self, name: HeaderName, value: &str) -> Self {
        self.header(name, value)
    }
}

/// A string of RFC 9651, which is ASCII.
fn quoted(key: &str) -> Option<String> {
    if !key.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return None;
    }
    let mut quoted = String::with_capacity(key.len() + 2);
    quoted.push('"');
    for letter in key.chars() {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    Some(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(request: RequestBuilder) -> Vec<(String, String)> {
        let request = request.build().unwrap();
        let headers = request.headers().iter();
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
    }

    fn request() -> RequestBuilder {
        reqwest::Client::new().post("http://localhost/charges")
    }

    #[test]
    fn the_key_is_a_structured_field_string() {
        let check = |key: &str, expected: &str| {
            let sent = headers(request().step_key(&StepContext::for_test(key)));
            assert_eq!(sent, [("idempotency-key".to_owned(), expected.to_owned())]);
        };
        check("order-7:charge-card", "\"order-7:charge-card\"");
        check("order-7:charge-card:undo", "\"order-7:charge-card:undo\"");
        check(r#"a"b\c:charge"#, r#""a\"b\\c:charge""#);
    }

    #[test]
    fn a_second_call_of_a_step_has_a_key_of_its_own() {
        let ctx = StepContext::for_test("order-7:charge-card");
        let sent = headers(request().step_key_for(&ctx, "capture"));
        assert_eq!(sent[0].1, "\"order-7:charge-card/capture\"");
    }

    #[test]
    fn a_compensation_can_send_the_key_of_its_step() {
        let ctx = StepContext::for_test("order-7:charge-card:undo");
        let sent = headers(request().idempotency_key(ctx.original_key(), &ctx));
        assert_eq!(sent[0].1, "\"order-7:charge-card\"");
    }

    #[test]
    fn a_key_that_is_no_header_is_not_sent() {
        let ctx = StepContext::for_test("order-7:charge-card");
        for name in ["straße", "a\r\nx: y", "a\nb"] {
            assert!(request().step_key_for(&ctx, name).build().unwrap_err().is_builder(), "{name:?}");
        }
    }
}
