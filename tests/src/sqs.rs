//! Scenarios whose messages Amazon SQS and SNS carry: one mock of them for all scenarios of a program, with names of their own for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use saga_core::transport::Transport;
use saga_servers::MotoServer;
use saga_sqs::{SqsOptions, SqsTransport};
use tokio::sync::OnceCell;

tokio::task_local! {
    static ON: ();
}

/// It ends with the program.
static SERVER: OnceCell<MotoServer> = OnceCell::const_new();
static SCENARIOS: AtomicU32 = AtomicU32::new(0);

/// Runs a scenario whose services talk to each other by SQS and SNS.
///
/// # Cancel safety
/// It is the scenario's.
pub async fn on(scenario: impl Future<Output = ()>) {
    ON.scope((), scenario).await;
}

/// Whether this is such a scenario.
pub(crate) fn is_on() -> bool {
    ON.try_with(|()| ()).is_ok()
}

/// A transport with queues and topics of its own.
pub(crate) async fn carrier() -> Arc<dyn Transport> {
    let server = SERVER.get_or_init(start).await;
    let prefix = format!("t{}", SCENARIOS.fetch_add(1, Ordering::Relaxed));
    let options =
        SqsOptions::new("us-east-1").access_key("AKIDEXAMPLE", "secret").endpoint(server.url()).prefix(prefix);
    Arc::new(SqsTransport::connect_with(options).await.unwrap())
}

async fn start() -> MotoServer {
    MotoServer::start().await.unwrap()
}
