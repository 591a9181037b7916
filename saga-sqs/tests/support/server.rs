use std::time::Duration;

use saga_servers::MotoServer;
use saga_sqs::SqsOptions;
use tokio::sync::OnceCell;

/// It ends with the program.
static SERVER: OnceCell<MotoServer> = OnceCell::const_new();

/// A server of its own.
pub(crate) fn server() -> MotoServer {
    saga_testkit::block_on(MotoServer::start()).expect("moto starts")
}

/// The server that the tests of a program share. Each uses a prefix of its own.
pub(crate) async fn shared_server() -> &'static MotoServer {
    SERVER.get_or_init(async || MotoServer::start().await.expect("moto starts")).await
}

/// At this server. Requests wait for a second only, so that what closes does not wait for more.
pub(crate) fn options(server: &MotoServer, prefix: &str) -> SqsOptions {
    let options = SqsOptions::new("us-east-1").access_key("AKIDEXAMPLE", "secret").endpoint(server.url());
    options.prefix(prefix).wait_time(Duration::from_secs(1))
}
