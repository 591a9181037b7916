//! What the test command gives: the addresses of the servers that all tests of a run share.
//!
//! They share the servers, never a database or a virtual host: [`database`] and [`vhost`] make one for the asking test
//! and remove it when they are dropped.

use std::env;

use crate::error::Error;
use crate::management::Management;
use crate::postgres::{psql, quoted};
use crate::url::{Url, escaped};

/// The variable with the address of the PostgreSQL server.
pub const POSTGRES_URL: &str = "SAGA_POSTGRES_URL";
/// The variable with the address of PgBouncer in front of that server.
pub const PGBOUNCER_URL: &str = "SAGA_PGBOUNCER_URL";
/// The variable with the address of the RabbitMQ broker.
pub const AMQP_URL: &str = "SAGA_AMQP_URL";
/// The variable with the address of that broker's management interface.
pub const AMQP_MANAGEMENT_URL: &str = "SAGA_AMQP_MANAGEMENT_URL";

/// The address of the shared PostgreSQL server, as a superuser.
///
/// # Panics
/// Nobody gave an address; the message says how to get one.
#[track_caller]
pub fn postgres_url() -> String {
    given(POSTGRES_URL)
}

/// The address of PgBouncer, in transaction mode, in front of the shared PostgreSQL server.
///
/// # Panics
/// Nobody gave an address; the message says how to get one.
#[track_caller]
pub fn pgbouncer_url() -> String {
    given(PGBOUNCER_URL)
}

/// The address of the shared RabbitMQ broker.
///
/// # Panics
/// Nobody gave an address; the message says how to get one.
#[track_caller]
pub fn amqp_url() -> String {
    given(AMQP_URL)
}

/// The address of the shared broker's management interface, without a path.
///
/// # Panics
/// Nobody gave an address; the message says how to get one.
#[track_caller]
pub fn amqp_management_url() -> String {
    given(AMQP_MANAGEMENT_URL)
}

/// An empty database on the shared server, with `purpose` in its name.
///
/// # Errors
/// The server does not answer.
///
/// # Panics
/// Nobody gave an address; the message says how to get one.
///
/// # Cancel safety
/// Dropped, the database may be left.
pub async fn database(purpose: &str) -> Result<Database, Error> {
    let server = postgres_url();
    let name = unique(purpose);
    psql(&server, &format!("CREATE DATABASE {}", quoted(&name))).await?;
    Ok(Database { url: Url::parse(&server)?.with_path(&escaped(&name)), server, name })
}

/// An empty virtual host on the shared broker, with `purpose` in its name.
///
/// # Errors
/// The broker does not answer.
///
/// # Panics
/// Nobody gave an address; the message says how to get one.
///
/// # Cancel safety
/// Dropped, the virtual host may be left.
pub async fn vhost(purpose: &str) -> Result<Vhost, Error> {
    let management = Management::at(&amqp_management_url())?;
    let name = unique(purpose);
    management.create_vhost(&name).await?;
    Ok(Vhost { url: Url::parse(&amqp_url())?.with_path(&escaped(&name)), management, name })
}

/// A test's own database, removed with this value, whoever is still connected.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
    url: String,
}

impl Database {
    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its address through PgBouncer.
    ///
    /// # Panics
    /// Nobody gave the address of PgBouncer; the message says how to get one.
    #[track_caller]
    pub fn pgbouncer_url(&self) -> Result<String, Error> {
        Ok(Url::parse(&pgbouncer_url())?.with_path(&escaped(&self.name)))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(&self.name));
        let server = self.server.clone();
        blocking(async move { psql(&server, &statement).await.map(drop) });
    }
}

/// A test's own virtual host, removed with this value.
#[derive(Debug)]
pub struct Vhost {
    management: Management,
    name: String,
    url: String,
}

impl Vhost {
    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its name, as it stands in paths of the management interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The broker's management interface.
    pub fn management(&self) -> &Management {
        &self.management
    }
}

impl Drop for Vhost {
    fn drop(&mut self) {
        let (management, name) = (self.management.clone(), self.name.clone());
        blocking(async move { management.delete_vhost(&name).await });
    }
}

#[track_caller]
fn given(variable: &'static str) -> String {
    match env::var(variable) {
        Ok(address) if !address.is_empty() => address,
        _ => panic!("{}", Error::NotGiven { variable }),
    }
}

/// A name that no other test of this run or of an earlier one has.
fn unique(purpose: &str) -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let short: String = purpose.chars().take(40).collect();
    format!("{short}_{:x}_{random:016x}", std::process::id())
}

/// Runs `task` to its end on a thread of its own: what drops the value may be a runtime's only thread.
///
/// A failure is printed: the server may be gone, and what was made on it with it.
fn blocking(task: impl Future<Output = Result<(), Error>> + Send + 'static) {
    let run = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let outcome = runtime.map_err(Error::system("make a runtime")).and_then(|runtime| runtime.block_on(task));
        if let Err(error) = outcome {
            eprintln!("{error}");
        }
    });
    let _ = run.join();
}
