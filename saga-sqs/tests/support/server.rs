use saga_servers::MotoServer;
use saga_sqs::SqsOptions;

/// A server of its own.
pub(crate) fn server() -> MotoServer {
    saga_testkit::block_on(MotoServer::start()).expect("moto starts")
}

/// Short times, at this server.
pub(crate) fn options(server: &MotoServer, prefix: &str) -> SqsOptions {
    SqsOptions::new("us-east-1").access_key("AKIDEXAMPLE", "secret").endpoint(server.url()).prefix(prefix)
}
