//! Which packages of the system are missing.

use crate::java;
use crate::programs::{
    libfaketime, postgres_programs, program, python_with_grpcio, python_with_httpx, python_with_pika, python_with_venv,
    rabbitmq_program,
};
use crate::redis::redis::redis_server;

/// The names, in Debian and Ubuntu, of the packages that this crate needs and does not find.
pub fn missing_packages() -> Vec<&'static str> {
    let packages = [
        ("postgresql", postgres_programs().is_ok()),
        ("rabbitmq-server", rabbitmq_program("rabbitmq-server").is_ok()),
        ("pgbouncer", program("pgbouncer", "PgBouncer", "pgbouncer").is_ok()),
        ("redis-server", redis_server().is_ok()),
        ("python3-pika", python_with_pika().is_ok()),
        ("python3-httpx", python_with_httpx().is_ok()),
        ("python3-grpcio", python_with_grpcio().is_ok()),
        ("python3-protobuf", python_with_grpcio().is_ok()),
        ("python3-venv", python_with_venv().is_ok()),
        ("libfaketime", libfaketime().is_ok()),
        ("default-jre-headless", java::virtual_machine().is_ok()),
    ];
    packages.into_iter().filter(|(_, is_there)| !is_there).map(|(name, _)| name).collect()
}
