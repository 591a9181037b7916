//! Where the workspace is, and how its cargo is called.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The features of the examples that bring servers, TLS for Kafka, which needs OpenSSL's headers, and the allocator of the simulation:
/// off for users, on for tests and checks.
pub(crate) const WITH_SERVERS: &str = "order-saga/postgres,travel/postgres,travel/rabbitmq,booking/rabbitmq,booking/sqs,\
saga-tests/kafka,saga-tests/sqs,order-rig/kafka,order-rig/sqs,saga-kafka/tls,saga-testkit/mimalloc";

/// The root of the workspace: the folder above this crate's.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// A call of the cargo that runs us, in the workspace's root.
pub(crate) fn cargo() -> Command {
    program(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
}

/// A call of `name` in the workspace's root.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}
