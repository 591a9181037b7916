//! PgBouncer in front of a PostgreSQL server, in transaction mode.

use std::fmt::Write as _;
use std::time::Duration;

use crate::error::Error;
use crate::folder::{Folder, unprivileged};
use crate::ports::{STARTS_MAX, free_port};
use crate::postgres::psql;
use crate::programs::program;
use crate::running::RunningProcess;
use crate::server_process::{IsReady, Kind, ServerProcess};
use crate::url::Url;

const SERVER: &str = "PgBouncer";
const LOG: &str = "pgbouncer.log";
const KIND: Kind = Kind { server: SERVER, log: LOG, start_patience: Duration::from_secs(30) };

/// PgBouncer in transaction mode: each transaction may run on another connection to the server.
#[derive(Debug)]
pub struct PgBouncer {
    process: ServerProcess,
    url: String,
}

impl PgBouncer {
    /// Starts PgBouncer before the server at an address such as that of [`PostgresServer`](crate::PostgresServer), and
    /// waits until it answers for it. All the server's databases can be reached through it, as the address's user.
    ///
    /// # Errors
    /// PgBouncer is not installed, it does not start, or the server behind it does not answer.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start(in_front_of: &str) -> Result<Self, Error> {
        program("pgbouncer", SERVER, "pgbouncer")?;
        Self::start_in(Folder::temporary("pgbouncer")?, in_front_of).await
    }

    pub(crate) async fn start_in(folder: Folder, in_front_of: &str) -> Result<Self, Error> {
        let server = Url::parse(in_front_of)?;
        let mut bouncer = Self { process: ServerProcess::new(&KIND, folder), url: String::new() };
        for _ in 1..STARTS_MAX {
            let port = free_port()?;
            bouncer.write_settings(&server, port)?;
            if bouncer.run().await? {
                bouncer.url = server.at("127.0.0.1", port);
                psql(&bouncer.url, "SELECT 1").await?;
                return Ok(bouncer);
            }
        }
        Err(bouncer.process.not_started("each port that was tried was taken meanwhile"))
    }

    /// The address of the same database through PgBouncer.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address of another of the server's databases.
    pub fn url_of(&self, database: &str) -> Result<String, Error> {
        Ok(Url::parse(&self.url)?.with_path(&crate::url::escaped(database)))
    }

    /// Ends it; its clients' connections are closed.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, it ends all the same.
    pub async fn stop(&mut self) -> Result<(), Error> {
        self.process.kill().await
    }

    /// Lets it go on without an owner.
    pub(crate) fn leave_running(mut self) -> Option<RunningProcess> {
        let folder = self.process.folder.path().display().to_string();
        self.process.take().map(|mut process| RunningProcess::leave(&mut process, folder))
    }

    async fn run(&mut self) -> Result<bool, Error> {
        let mut command = unprivileged(&program("pgbouncer", SERVER, "pgbouncer")?)?;
        command.arg(self.process.folder.path().join("pgbouncer.ini"));
        let look =
            |folder: &Folder| -> IsReady { Box::pin(std::future::ready(folder.log_end(LOG).contains("process up"))) };
        self.process.run(command, look).await
    }

    fn write_settings(&self, server: &Url<'_>, port: u16) -> Result<(), Error> {
        let Url { user, password, host, port: server_port, .. } = server;
        let mut settings = format!("[databases]\n* = host={host} port={server_port} user={user}");
        if !password.is_empty() {
            let _ = write!(settings, " password='{}'", password.replace('\'', "''"));
        }
        let _ = write!(
            settings,
            "\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             admin_users = {user}\npool_mode = transaction\nmax_client_conn = 1000\ndefault_pool_size = 20\n\
             ignore_startup_parameters = extra_float_digits\nserver_login_retry = 1\n"
        );
        self.process.folder.write_for_server("pgbouncer.ini", &settings).map(drop)
    }
}
