//! What the test command gives: the addresses of the servers that all tests of a run share.
//!
//! They share the servers, never a database or a virtual host: [`database`] and [`vhost`] make one for the asking test
//! and remove it when they are dropped.

use std::env;
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::error::Error;
use crate::postgres::{psql, quoted};
use crate::rabbitmq::management::Management;
use crate::url::{Url, escaped};

/// The variable with the address of the PostgreSQL server.
pub const POSTGRES_URL: &str = "SAGA_POSTGRES_URL";
/// The variable with the address of PgBouncer in front of that server.
pub const PGBOUNCER_URL: &str = "SAGA_PGBOUNCER_URL";
/// The variable with the address of the RabbitMQ broker.
pub const AMQP_URL: &str = "SAGA_AMQP_URL";
/// The variable with the address of that broker's management interface.
pub const AMQP_MANAGEMENT_URL: &str = "SAGA_AMQP_MANAGEMENT_URL";

/// The password of the users and roles that tests make on servers that only they reach.
const PASSWORD: &str = "secret";

/// The address of the shared PostgreSQL server, as a superuser.
///
/// # Panics
/// If no address is given; the message says how to get one.
#[track_caller]
pub fn postgres_url() -> String {
    given(POSTGRES_URL)
}

/// The address of PgBouncer, in transaction mode, in front of the shared PostgreSQL server.
///
/// # Panics
/// If no address is given; the message says how to get one.
#[track_caller]
pub fn pgbouncer_url() -> String {
    given(PGBOUNCER_URL)
}

/// The address of the shared RabbitMQ broker.
///
/// # Panics
/// If no address is given; the message says how to get one.
#[track_caller]
pub fn amqp_url() -> String {
    given(AMQP_URL)
}

/// The address of the shared broker's management interface, without a path.
///
/// # Panics
/// If no address is given; the message says how to get one.
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
/// If no address is given; the message says how to get one.
///
/// # Cancel safety
/// Dropped, the database may be left.
pub async fn database(purpose: &str) -> Result<Database, Error> {
    let server = postgres_url();
    let name = unique(purpose);
    psql(&server, &format!("CREATE DATABASE {}", quoted(&name))).await?;
    let url = Url::parse(&server)?.with_path(&escaped(&name));
    Ok(Database { url, server, name, roles: Mutex::default() })
}

/// An empty virtual host on the shared broker, with `purpose` in its name.
///
/// # Errors
/// The broker does not answer.
///
/// # Panics
/// If no address is given; the message says how to get one.
///
/// # Cancel safety
/// Dropped, the virtual host may be left.
pub async fn vhost(purpose: &str) -> Result<Vhost, Error> {
    let management = Management::at(&amqp_management_url())?;
    let name = unique(purpose);
    management.create_vhost(&name).await?;
    let url = Url::parse(&amqp_url())?.with_path(&escaped(&name));
    Ok(Vhost { url, management, name, users: Mutex::default() })
}

/// A test's own database, removed with this value, also with open connections.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
    url: String,
    roles: Mutex<Vec<String>>,
}

impl Database {
    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes a role that may log in and do nothing else, and answers the database's address as that role. The role's name is
    /// the user in the address. It is removed with the database.
    ///
    /// # Errors
    /// The server does not answer.
    ///
    /// # Cancel safety
    /// Dropped, the role may be left.
    pub async fn role(&self, purpose: &str) -> Result<(String, String), Error> {
        let name = unique(purpose);
        let statement = format!("CREATE ROLE {} LOGIN PASSWORD '{PASSWORD}'", quoted(&name));
        self.roles.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        psql(&self.server, &statement).await?;
        let url = Url::parse(&self.url)?.with_user(&name, PASSWORD);
        Ok((name, url))
    }

    /// Its address through PgBouncer.
    ///
    /// # Panics
    /// If no address of PgBouncer is given; the message says how to get one.
    #[track_caller]
    pub fn pgbouncer_url(&self) -> Result<String, Error> {
        Ok(Url::parse(&pgbouncer_url())?.with_path(&escaped(&self.name)))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(&self.name));
        let server = self.server.clone();
        let roles = std::mem::take(self.roles.get_mut().unwrap_or_else(PoisonError::into_inner));
        blocking(async move {
            psql(&server, &statement).await?;
            for role in roles {
                psql(&server, &format!("DROP ROLE IF EXISTS {}", quoted(&role))).await?;
            }
            Ok(())
        });
    }
}

/// A test's own virtual host, removed with this value.
#[derive(Debug)]
pub struct Vhost {
    management: Management,
    name: String,
    url: String,
    users: Mutex<Vec<String>>,
}

/// What a user of a broker may do, as patterns of names.
#[derive(Debug, Clone, Copy)]
pub struct Permissions<'a> {
    /// What it may declare and remove.
    pub configure: &'a str,
    /// Where it may publish to, and what it may bind.
    pub write: &'a str,
    /// What it may receive from, and bind to.
    pub read: &'a str,
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

    /// Makes a user with these permissions on this virtual host and no others, and answers its name and the virtual host's
    /// address as that user. It is removed with the virtual host.
    ///
    /// # Errors
    /// The broker does not answer.
    ///
    /// # Cancel safety
    /// Dropped, the user may be left.
    pub async fn user(&self, purpose: &str, permissions: Permissions<'_>) -> Result<(String, String), Error> {
        let name = unique(purpose);
        self.users.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        self.management.put(&format!("users/{name}"), &json!({ "password": PASSWORD, "tags": "" })).await?;
        let Permissions { configure, write, read } = permissions;
        let permissions = json!({ "configure": configure, "write": write, "read": read });
        self.management.put(&format!("permissions/{}/{name}", escaped(&self.name)), &permissions).await?;
        let url = Url::parse(&self.url)?.with_user(&name, PASSWORD);
        Ok((name, url))
    }

    /// The broker's management interface.
    pub fn management(&self) -> &Management {
        &self.management
    }
}

impl Drop for Vhost {
    fn drop(&mut self) {
        let (management, name) = (self.management.clone(), self.name.clone());
        let users = std::mem::take(self.users.get_mut().unwrap_or_else(PoisonError::into_inner));
        blocking(async move {
            management.delete_vhost(&name).await?;
            for user in users {
                management.delete(&format!("users/{user}")).await?;
            }
            Ok(())
        });
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
