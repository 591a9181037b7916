//! Servers for tests: private PostgreSQL, RabbitMQ and PgBouncer processes, and a proxy that breaks connections.
//!
//! The servers are those of the system's packages. Each runs in a temporary folder on free ports of the loopback
//! address, as an unprivileged user where it insists on one, and never as a service of the system. It ends, and its
//! folder with it, when its value is dropped, and also when the process that owns it dies by SIGKILL.
//!
//! - A test that needs *a* server asks [`shared`] for the address that the test command gave, and makes a database or a
//!   virtual host of its own there.
//! - A test that kills its server starts one: [`PostgresServer`], [`RabbitMqServer`], [`PgBouncer`].
//! - A test of several brokers starts a [`RabbitMqCluster`].
//! - A test of broken connections puts a [`FaultProxy`] between.
//! - A test with processes of its own, say replicas that it kills, runs each as a [`ProcessGroup`].
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

mod error;
mod folder;
pub mod installed;
mod management;
mod pgbouncer;
mod ports;
mod postgres;
mod process;
mod programs;
mod proxy;
mod rabbitmq;
mod rabbitmq_cluster;
mod running;
mod services;
pub mod shared;
mod signal;
mod url;
mod wait;
mod watchdog;

pub use self::error::Error;
pub use self::management::Management;
pub use self::pgbouncer::PgBouncer;
pub use self::postgres::{PostgresServer, psql};
pub use self::process::ProcessGroup;
pub use self::programs::{libfaketime, postgres_programs, python_with_pika};
pub use self::proxy::{Counts, Cut, Direction, FaultProxy, Traffic};
pub use self::rabbitmq::{Certificate, RabbitMqServer};
pub use self::rabbitmq_cluster::RabbitMqCluster;
pub use self::running::RunningProcess;
pub use self::services::{Addresses, Services};
pub use self::signal::Signal;
