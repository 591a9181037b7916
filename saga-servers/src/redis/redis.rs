//! A private Redis server, alone or with a replica.

use std::path::Path;
use std::time::Duration;

use crate::certificate::Certificate;
use crate::error::Error;
use crate::folder::{Folder, unprivileged};
use crate::ports::{STARTS_MAX, free_port};
use crate::programs::program;
use crate::redis::redis_clock::RedisClock;
use crate::redis::redis_protocol::{command, encoded};
use crate::server_process::{IsReady, Kind, ServerProcess};
use crate::signal::Signal;
use crate::wait::until;

pub(crate) const SERVER: &str = "Redis";
const START_PATIENCE: Duration = Duration::from_mins(1);
const KIND: Kind = Kind { server: SERVER, log: "redis.log", start_patience: START_PATIENCE };

/// What a server answered survives SIGKILL, and it forgets nothing for lack of memory.
const SETTINGS: [(&str, &str); 4] =
    [("save", ""), ("appendonly", "yes"), ("appendfsync", "always"), ("maxmemory-policy", "noeviction")];

/// A Redis server on a free port, empty, without a password.
///
/// Writes that were answered survive [`kill`](Self::kill).
#[derive(Debug)]
pub struct RedisServer {
    process: ServerProcess,
    port: u16,
    settings: Vec<(String, String)>,
    password: Option<String>,
    /// A second port, for TLS.
    tls_port: Option<u16>,
    /// If it is not that of the machine.
    clock: Option<RedisClock>,
}

impl RedisServer {
    /// Starts a server in a temporary folder and waits until it answers.
    ///
    /// # Errors
    /// Redis is not installed, or it does not start; the error has the end of its log.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(&[]).await
    }

    /// As [`start`](Self::start), with settings such as `("maxmemory", "4mb")`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start_with(settings: &[(&str, &str)]) -> Result<Self, Error> {
        redis_server()?;
        Self::start_in(Folder::temporary("redis")?, settings, false, None).await
    }

    /// As [`start`](Self::start), with a clock that [`set_clock`](Self::set_clock) sets.
    ///
    /// # Errors
    /// As [`start`](Self::start), and libfaketime is not installed.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start_with_clock() -> Result<Self, Error> {
        redis_server()?;
        let folder = Folder::temporary("redis")?;
        let clock = RedisClock::in_folder(&folder)?;
        Self::start_in(folder, &[], false, Some(clock)).await
    }

    /// As [`start_with`](Self::start_with), taking connections with TLS as well, without a certificate of the client.
    ///
    /// # Errors
    /// As [`start`](Self::start), and the certificate cannot be read.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start_with_tls(certificate: &Certificate, settings: &[(&str, &str)]) -> Result<Self, Error> {
        redis_server()?;
        let folder = Folder::temporary("redis")?;
        let mut all: Vec<(&str, String)> = vec![("tls-auth-clients", "no".to_owned())];
        for (name, path) in [("tls-cert-file", &certificate.certificate), ("tls-key-file", &certificate.key)] {
            let text = std::fs::read_to_string(path).map_err(Error::system(format!("read {}", path.display())))?;
            all.push((name, folder.write_for_server(name, &text)?.display().to_string()));
        }
        let all: Vec<_> =
            settings.iter().copied().chain(all.iter().map(|(name, value)| (*name, value.as_str()))).collect();
        Self::start_in(folder, &all, true, None).await
    }

    async fn start_in(
        folder: Folder,
        settings: &[(&str, &str)],
        has_tls: bool,
        clock: Option<RedisClock>,
    ) -> Result<Self, Error> {
        folder.make_for_server("data")?;
        let password = settings.iter().find(|(name, _)| *name == "requirepass").map(|(_, value)| (*value).to_owned());
        let settings = SETTINGS.iter().chain(settings).map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let mut server =
            Self { process: ServerProcess::new(&KIND, folder), port: 0, settings, password, tls_port: None, clock };
        for _ in 1..STARTS_MAX {
            server.port = free_port()?;
            server.tls_port = if has_tls { Some(free_port()?) } else { None };
            if server.run().await? {
                return Ok(server);
            }
        }
        Err(server.not_started("each port that was tried was taken meanwhile"))
    }

    /// Starts a replica of this server and waits until it has all that is there.
    ///
    /// # Errors
    /// As [`start`](Self::start), and the replica does not get in step within a minute.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start_replica(&self) -> Result<Self, Error> {
        // Without the delay, the server waits for more replicas before it sends its data.
        self.command(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]).await?;
        let replica = Self::start_with(&[("replicaof", &format!("127.0.0.1 {}", self.port))]).await?;
        let look = async || {
            let state = replica.command(&["INFO", "replication"]).await?;
            Ok::<_, Error>(state.contains("master_link_status:up").then_some(()))
        };
        match until(START_PATIENCE, look).await? {
            Some(()) => Ok(replica),
            None => Err(replica.not_started("it was not in step with its primary within a minute")),
        }
    }

    /// SIGKILL to the server, as in a crash.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the signal was sent all the same.
    pub async fn kill(&mut self) -> Result<(), Error> {
        self.process.kill().await
    }

    /// SIGSTOP: it keeps its connections and answers nothing, until [`resume`](Self::resume).
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.process.signal(Signal::Stop)
    }

    /// Lets a frozen server go on.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn resume(&mut self) -> Result<(), Error> {
        self.process.signal(Signal::Continue)
    }

    /// Ends the server in an orderly way; open connections are closed.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the server was asked to end.
    pub async fn stop(&mut self) -> Result<(), Error> {
        self.process.stop().await
    }

    /// Starts the server again on the same data and the same port; one that runs is stopped before.
    ///
    /// # Errors
    /// The server does not start.
    ///
    /// # Cancel safety
    /// Dropped, the server does not run.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.stop().await?;
        let again = async || Ok::<_, Error>(self.run().await?.then_some(()));
        match until(START_PATIENCE, again).await? {
            Some(()) => Ok(()),
            None => Err(self.not_started("its port stayed in use")),
        }
    }

    /// Sends one command, such as `&["GET", "key"]`, and returns the answer as text: nothing for a missing value, a line for
    /// each member of an array.
    ///
    /// # Errors
    /// The server does not answer, or answers with an error.
    ///
    /// # Cancel safety
    /// Dropped, the command may have taken effect.
    pub async fn command(&self, words: &[&str]) -> Result<String, Error> {
        command(self.port, self.login(), words).await
    }

    /// The address, such as `redis://127.0.0.1:6379`, with the password if there is one.
    pub fn url(&self) -> String {
        let login = self.password.as_deref().map(|password| format!("default:{password}@")).unwrap_or_default();
        format!("redis://{login}127.0.0.1:{}", self.port)
    }

    /// The address with TLS, such as `rediss://localhost:6380`, if it was started with it.
    pub fn tls_url(&self) -> Option<String> {
        let login = self.password.as_deref().map(|password| format!("default:{password}@")).unwrap_or_default();
        self.tls_port.map(|port| format!("rediss://{login}localhost:{port}"))
    }

    /// The port of 127.0.0.1 that it listens on; a restart keeps it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with its data and its log.
    pub fn folder(&self) -> &Path {
        self.process.folder.path()
    }

    /// Sets its clock ahead of that of the machine by so many seconds, or behind it if the number is negative. It jumps at once.
    ///
    /// # Errors
    /// It was not started [with a clock](Self::start_with_clock).
    pub fn set_clock(&self, seconds: i64) -> Result<(), Error> {
        let none = || Error::Refused {
            asked: "to set the clock of Redis".to_owned(),
            answer: "it was started without one; use `start_with_clock`".to_owned(),
        };
        self.clock.as_ref().ok_or_else(none)?.set(seconds)
    }

    /// All that it logged, also before it was killed and restarted.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String, Error> {
        self.process.log()
    }

    /// Whether it is ready; false if its port was taken.
    async fn run(&mut self) -> Result<bool, Error> {
        let server = redis_server()?;
        let mut call = match &self.clock {
            Some(clock) => clock.call(&server)?,
            None => unprivileged(&server)?,
        };
        call.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        call.arg("--dir").arg(self.process.folder.path().join("data"));
        for (name, value) in &self.settings {
            call.arg(format!("--{name}")).args(words(name, value));
        }
        if let Some(port) = self.tls_port {
            call.args(["--tls-port", &port.to_string()]);
        }
        if self.settings.iter().any(|(name, _)| name == "cluster-enabled") {
            call.args(["--cluster-port", &free_port()?.to_string()]);
        }
        let (port, login) = (self.port, self.login());
        let look = |_: &Folder| -> IsReady {
            let login = login.clone();
            Box::pin(async move { command(port, login, &["PING"]).await.is_ok() })
        };
        self.process.run(call, look).await
    }

    fn login(&self) -> Option<Vec<u8>> {
        self.password.as_deref().map(|password| encoded(&["AUTH", password]))
    }

    pub(crate) fn not_started(&self, reason: &str) -> Error {
        self.process.not_started(reason)
    }
}

/// `replicaof` takes two words, and `save` an empty one.
fn words<'a>(name: &str, value: &'a str) -> Vec<&'a str> {
    if name == "replicaof" { value.split(' ').collect() } else { vec![value] }
}

pub(crate) fn redis_server() -> Result<std::path::PathBuf, Error> {
    program("redis-server", SERVER, "redis-server")
}
