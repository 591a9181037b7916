//! Servers for tests: private PostgreSQL, RabbitMQ, Redis and PgBouncer processes, a broker of Kafka's protocol, Debezium's
//! connector, a mock of Amazon SQS and SNS, and a proxy that breaks connections.
//!
//! The programs come from the packages of the system, but for moto, tansu and Debezium, which pip installs. Each server runs in a temporary folder on free ports of the
//! loopback address, as an unprivileged user if it refuses to run as root, and never as a service of the system. The
//! server and its folder are removed when the value is dropped, and also when the owning process dies by SIGKILL.
//!
//! - A test that needs *a* server gets the address of a shared one from [`shared`], and creates its own database or
//!   virtual host there.
//! - A test that kills its server starts one: [`PostgresServer`], [`RabbitMqServer`], [`RedisServer`], [`PgBouncer`].
//! - A test of SQS or SNS starts a [`MotoServer`], and one of Kafka a [`TansuServer`].
//! - A test of change data capture starts a worker of [`KafkaConnect`] between PostgreSQL and a [`TansuServer`].
//! - A test that needs several brokers starts a [`RabbitMqCluster`], and one that needs several nodes of Redis a
//!   [`RedisCluster`].
//! - A test of broken connections puts a [`FaultProxy`] in between.
//! - A test that kills replicas runs each one as a [`ProcessGroup`].
//!
//! ```no_run
//! # async fn test() -> Result<(), saga_servers::Error> {
//! let mut server = saga_servers::PostgresServer::start().await?;
//! let url = server.create_database("orders").await?;
//! server.kill().await?;
//! server.restart().await?;        // the same data, the same address
//! # Ok(())
//! # }
//! ```

mod certificate;
mod error;
mod folder;
pub mod installed;
mod java;
mod kafka_connect;
mod moto;
mod pgbouncer;
mod pip;
mod ports;
mod postgres;
mod process;
mod programs;
mod proxy;
mod rabbitmq;
mod redis;
mod running;
mod server_process;
mod services;
pub mod shared;
mod signal;
mod tansu;
mod threads;
mod url;
mod wait;
mod watchdog;

pub use self::certificate::{Certificate, Certificates};
pub use self::error::Error;
pub use self::kafka_connect::KafkaConnect;
pub use self::moto::MotoServer;
pub use self::pgbouncer::PgBouncer;
pub use self::postgres::{PostgresServer, psql};
pub use self::process::ProcessGroup;
pub use self::programs::{libfaketime, postgres_programs, python_with_grpcio, python_with_httpx, python_with_pika};
pub use self::proxy::{Counts, Cut, Direction, FaultProxy, Traffic};
pub use self::rabbitmq::management::Management;
pub use self::rabbitmq::rabbitmq::RabbitMqServer;
pub use self::rabbitmq::rabbitmq_cluster::RabbitMqCluster;
pub use self::redis::redis::RedisServer;
pub use self::redis::redis_cluster::RedisCluster;
pub use self::running::RunningProcess;
pub use self::services::{Addresses, Services};
pub use self::signal::Signal;
pub use self::tansu::TansuServer;
pub use self::url::without_password;
