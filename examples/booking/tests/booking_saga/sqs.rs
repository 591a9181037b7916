//! A mock of SQS and SNS for all scenarios, with queues and topics of its own for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use booking::broker::{Address, Broker};
use saga_servers::MotoServer;
use saga_sqs::{SqsOptions, SqsTransport};
use tokio::sync::OnceCell;

const REGION: &str = "us-east-1";
const KEY: (&str, &str) = ("AKIDEXAMPLE", "secret");

/// What a killed process had received comes again soon.
const VISIBILITY: Duration = Duration::from_secs(3);

/// It ends with the program.
static SERVER: OnceCell<MotoServer> = OnceCell::const_new();
static SCENARIOS: AtomicU32 = AtomicU32::new(0);

/// Connects a scenario.
pub(crate) async fn broker() -> anyhow::Result<Broker> {
    let server = SERVER.get_or_try_init(MotoServer::start).await?;
    let prefix = format!("booking{}", SCENARIOS.fetch_add(1, Ordering::Relaxed));
    let options = SqsOptions::new(REGION).access_key(KEY.0, KEY.1).endpoint(server.url());
    let options = options.prefix(&prefix).visibility(VISIBILITY);
    let url = format!("sqs:{prefix}?visibility={}", VISIBILITY.as_secs());
    let transport = Arc::new(SqsTransport::connect_with(options).await?);
    Ok(Broker { transport, address: Address { url, environment: server.environment() } })
}
