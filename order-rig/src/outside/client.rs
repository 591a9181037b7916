use std::{error::Error, fmt, time::Duration};

use reqwest::Url;
use saga_core::StepError;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::place::without_password;

use super::{
    CancelOutcome, Charge, Payment, Refund, Reply, Services, Shipment, ShipmentRequest, Tally, server::IDEMPOTENCY_KEY,
};

/// The way to the services outside: in this process, or over HTTP.
#[derive(Debug, Clone)]
pub enum Outside {
    /// They run in this process.
    InProcess(Services),
    /// They are a process of their own.
    Http(reqwest::Client, Url),
}

/// How long a question about the book may take.
const TALLY_WAIT: Duration = Duration::from_secs(10);
/// An answer is a few numbers; a longer body is not read to its end.
const BODY_BYTES_MAX: usize = 64 * 1024;

impl Outside {
    /// The services at an address such as `http://127.0.0.1:8080`.
    pub fn at(url: &str) -> anyhow::Result<Self> {
        let base = Url::parse(url).ok().filter(|url| url.scheme() == "http" && url.has_host()).ok_or_else(|| {
            let shown = without_password(url);
            anyhow::anyhow!("--outside takes an address such as http://127.0.0.1:8080, not {shown:?}")
        })?;
        // The services stand in for ones in another house; a proxy of this house has no part in it.
        Ok(Self::Http(reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?, base))
    }

    /// What the services did so far, by their own book.
    pub async fn tally(&self) -> anyhow::Result<Tally> {
        match self {
            Self::InProcess(services) => Ok(services.tally()?),
            Self::Http(client, base) => {
                let asked = client.get(base.join("tally")?).timeout(TALLY_WAIT).send();
                Ok(serde_json::from_slice(&body_of(asked.await?.error_for_status()?).await?)?)
            }
        }
    }

    /// Asks for something under a key, and sorts the answer into done, no, and unknown.
    async fn ask<T: DeserializeOwned>(&self, path: &str, key: &str, body: &impl Serialize) -> Result<T, StepError> {
        let reply = match self {
            Self::InProcess(services) => services.answer(path, key, serde_json::to_value(body)?).await,
            Self::Http(client, base) => {
                let sent = client.post(base.join(path)?).header(IDEMPOTENCY_KEY, key).json(body).send();
                match sent.await {
                    Ok(response) => {
                        let status = response.status().as_u16();
                        // What refuses a call in front of the service does not answer in its words.
                        let body = serde_json::from_slice(&body_of(response).await?);
                        Reply { status, body: if status == 200 { body? } else { body.unwrap_or_default() } }
                    }
                    // No server took the call, so it had no effect.
                    Err(error) if error.is_connect() => return Err(StepError::not_sent(error)),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let Reply { status, body } = reply;
        match verdict(status) {
            Verdict::Done => Ok(serde_json::from_value(body)?),
            Verdict::Refused => Err(StepError::reject(reason(&body))),
            Verdict::NotTaken => Err(StepError::not_sent(format!("{status}: {}", reason(&body)))),
            Verdict::Unknown => Err(StepError::retry(format!("{status}: {}", reason(&body)))),
        }
    }
}

/// What a status says of the call.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Done,
    /// A decision of the business about this order.
    Refused,
    /// The service did not look at the call: it lacks a right, or there are too many. The order is not to blame.
    NotTaken,
    Unknown,
}

fn verdict(status: u16) -> Verdict {
    match status {
        200 => Verdict::Done,
        // Of what no repetition will make right: a bad request, a declined card, a payment that is not there, a key that
        // was used for something else or is barred, a parcel that is not taken.
        400 | 402 | 404 | 409 | 410 | 422 => Verdict::Refused,
        401 | 403 | 407 | 421 | 425 | 429 => Verdict::NotTaken,
        _ => Verdict::Unknown,
    }
}

/// The body, if it is as short as an answer is.
async fn body_of(mut response: reqwest::Response) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Read)? {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Why the body of an answer was not read.
#[derive(Debug)]
enum BodyError {
    Read(reqwest::Error),
    TooLong,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(_) => f.write_str("the answer could not be read"),
            Self::TooLong => write!(f, "the answer is longer than {BODY_BYTES_MAX} bytes"),
        }
    }
}

impl Error for BodyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::TooLong => None,
        }
    }
}

fn reason(body: &Value) -> &str {
    body.get("error").and_then(Value::as_str).unwrap_or("no reason was given")
}

/// The shop's account at the payment gateway.
#[derive(Debug, Clone)]
pub struct Gateway(pub Outside);

impl Gateway {
    /// Charges a card, once for one key.
    pub async fn charge(&self, key: &str, charge: &Charge) -> Result<Payment, StepError> {
        self.0.ask("/charges", key, charge).await
    }

    /// Gives back what was charged under another key, and bars that key.
    pub async fn refund(&self, key: &str, refund: &Refund) -> Result<(), StepError> {
        self.0.ask::<Value>("/refunds", key, refund).await.map(drop)
    }
}

/// The shop's account at the carrier.
#[derive(Debug, Clone)]
pub struct Carrier(pub Outside);

impl Carrier {
    /// Books a shipment, once for one key.
    pub async fn book(&self, key: &str, request: &ShipmentRequest) -> Result<Shipment, StepError> {
        self.0.ask("/shipments", key, request).await
    }

    /// Drops what was booked under another key, and bars that key.
    pub async fn cancel(&self, key: &str, cancellation: &CancelOutcome) -> Result<(), StepError> {
        self.0.ask::<Value>("/cancellations", key, cancellation).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use saga_core::step::StepErrorKind;

    use super::*;

    /// Asks a service that answers every call with these bytes, for as long as the caller reads them.
    async fn asked(head: &'static str, filler: &'static str) -> Result<Payment, StepError> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        // It ends when the connection does, which is closed by the runtime that this test runs on.
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a call");
            let _ = stream.read(&mut [0; 4096]);
            let mut sent = stream.write_all(head.as_bytes());
            while sent.is_ok() && !filler.is_empty() {
                sent = stream.write_all(filler.as_bytes());
            }
        });
        let gateway = Gateway(Outside::at(&url).expect("an address"));
        let charge = Charge { order_id: "A-1".to_owned(), amount_cents: 5 };
        gateway.charge("A-1:charge-card", &charge).await
    }

    #[tokio::test]
    async fn a_body_without_an_end_is_not_read() {
        let filler = "                                                                ";
        let error =
            asked("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", filler).await.expect_err("no answer");
        assert_eq!(error.kind(), StepErrorKind::Transient);
        assert!(error.to_string().contains("longer than 65536 bytes"), "{error}");
    }

    #[tokio::test]
    async fn a_service_that_is_busy_or_lets_no_caller_in_refuses_no_order() {
        for (head, kind) in [
            ("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 9\r\n\r\nslow down", StepErrorKind::NotSent),
            ("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n", StepErrorKind::NotSent),
            ("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n", StepErrorKind::Transient),
            ("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>", StepErrorKind::Transient),
            (
                "HTTP/1.1 402 Payment Required\r\ncontent-length: 25\r\n\r\n{\"error\":\"card declined\"}",
                StepErrorKind::Rejected,
            ),
        ] {
            let error = asked(head, "").await.expect_err(head);
            assert_eq!(error.kind(), kind, "{head}: {error}");
        }
    }
}
