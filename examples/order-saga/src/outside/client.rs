use std::time::Duration;

use reqwest::Url;
use saga_core::StepError;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    Cancellation, Charge, Payment, Refund, Reply, Services, Shipment, ShipmentRequest, Tally, server::IDEMPOTENCY_KEY,
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

impl Outside {
    /// The services at an address such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    ///
    /// A sentence, when it is no such address.
    pub fn at(url: &str) -> anyhow::Result<Self> {
        let base = Url::parse(url)
            .ok()
            .filter(|url| url.scheme() == "http" && url.has_host())
            .ok_or_else(|| anyhow::anyhow!("--outside takes an address such as http://127.0.0.1:8080, not {url:?}"))?;
        // The services stand in for ones in another house; a proxy of this house has no part in it.
        Ok(Self::Http(reqwest::Client::builder().no_proxy().build()?, base))
    }

    /// What the services did so far, by their own book.
    ///
    /// # Errors
    ///
    /// When they cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; it only reads.
    pub async fn tally(&self) -> anyhow::Result<Tally> {
        match self {
            Self::InProcess(services) => Ok(services.tally()?),
            Self::Http(client, base) => {
                let asked = client.get(base.join("tally")?).timeout(TALLY_WAIT).send();
                Ok(asked.await?.error_for_status()?.json().await?)
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
                    Ok(response) => Reply { status: response.status().as_u16(), body: response.json().await? },
                    // Nobody took the call, so nothing can have come of it.
                    Err(error) if error.is_connect() => return Err(StepError::not_sent(error)),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        match reply.status {
            200 => Ok(serde_json::from_value(reply.body)?),
            400..500 => Err(StepError::reject(reason(&reply.body))),
            status => Err(StepError::retry(format!("{status}: {}", reason(&reply.body)))),
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
    ///
    /// # Errors
    ///
    /// A rejection when the card is declined or the key is barred. Anything else may have charged it all the same.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the call may still be carried out; ask again with the same key.
    pub async fn charge(&self, key: &str, charge: &Charge) -> Result<Payment, StepError> {
        self.0.ask("/charges", key, charge).await
    }

    /// Gives back what was charged under another key, and bars that key.
    ///
    /// # Errors
    ///
    /// As [`charge`](Self::charge).
    ///
    /// # Cancel safety
    ///
    /// As [`charge`](Self::charge).
    pub async fn refund(&self, key: &str, refund: &Refund) -> Result<(), StepError> {
        self.0.ask::<Value>("/refunds", key, refund).await.map(drop)
    }
}

/// The shop's account at the carrier.
#[derive(Debug, Clone)]
pub struct Carrier(pub Outside);

impl Carrier {
    /// Books a shipment, once for one key.
    ///
    /// # Errors
    ///
    /// A rejection when the carrier does not take the parcel or the key is barred. Anything else may have booked it
    /// all the same.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the call may still be carried out; ask again with the same key.
    pub async fn book(&self, key: &str, request: &ShipmentRequest) -> Result<Shipment, StepError> {
        self.0.ask("/shipments", key, request).await
    }

    /// Drops what was booked under another key, and bars that key.
    ///
    /// # Errors
    ///
    /// As [`book`](Self::book).
    ///
    /// # Cancel safety
    ///
    /// As [`book`](Self::book).
    pub async fn cancel(&self, key: &str, cancellation: &Cancellation) -> Result<(), StepError> {
        self.0.ask::<Value>("/cancellations", key, cancellation).await.map(drop)
    }
}
