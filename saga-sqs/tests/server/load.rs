//! What a message costs: requests are counted.

use saga_servers::MotoServer;
use saga_sqs::SqsTransport;

use crate::support::messages::{accept, message, publish, subscribe};
use crate::support::options;

/// So few, since moto looks through all for each.
const MESSAGES: u32 = 300;
/// How many the relay sends in a call.
const IN_A_CALL: u32 = 100;
/// In hundredths: ten messages share a request, and a few requests are not full.
const REQUESTS_MAX: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn under_load_ten_messages_share_a_request() {
    let server = MotoServer::start().await.unwrap();
    let transport = SqsTransport::connect_with(options(&server, "l")).await.unwrap();
    drop(subscribe(&transport, "a", 100).await);
    transport.close().await;
    let before = server.requests().unwrap();
    for first in (0..MESSAGES).step_by(IN_A_CALL as usize) {
        publish(&transport, (first..first + IN_A_CALL).map(message).collect()).await;
    }
    let mut incoming = subscribe(&transport, "a", 100).await;
    let mut open = MESSAGES as usize;
    while open > 0 {
        let came = incoming.receive(64).await.unwrap();
        accept(&mut incoming, &came).await;
        open -= came.len();
    }
    transport.close().await;
    let after = server.requests().unwrap();
    for name in ["publish_batch", "receive_message", "delete_message_batch"] {
        let count = after[name] - before.get(name).copied().unwrap_or_default();
        println!("{name}: {count} requests for {MESSAGES} messages");
        assert!(count * 100 <= REQUESTS_MAX * MESSAGES as usize, "{name}: {count} requests for {MESSAGES} messages");
    }
}
