//! A private PostgreSQL server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::error::Error;
use crate::folder::{Folder, unprivileged};
use crate::ports::{STARTS_MAX, free_port, says_port_is_taken};
use crate::process::{ProcessGroup, send};
use crate::programs::postgres_programs;
use crate::running::RunningProcess;
use crate::signal::Signal;
use crate::url::{Url, escaped};
use crate::wait::until;

const SERVER: &str = "PostgreSQL";
const LOG: &str = "postgres.log";
const START_PATIENCE: Duration = Duration::from_mins(1);
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// A commit that was answered survives SIGKILL of the server: it was handed to the operating system. Only a crash of
/// the machine would need `fsync`, and costs each commit of a test a wait for the disk.
const SETTINGS: [(&str, &str); 7] = [
    ("synchronous_commit", "on"),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("max_connections", "300"),
    ("wal_level", "logical"),
    // Files in the data folder, which go with it, also after SIGKILL.
    ("dynamic_shared_memory_type", "mmap"),
    ("log_line_prefix", "%m [%p] "),
];

/// The superuser of tests needs no password. Any other role has to give its own, so that a wrong one is refused.
const ACCESS: &str = "host all postgres 127.0.0.1/32 trust\nhost replication postgres 127.0.0.1/32 trust\n\
                      host all all 127.0.0.1/32 scram-sha-256\n";

/// A PostgreSQL server on a free port, with an empty database `postgres`.
///
/// Commits that were answered survive [`kill`](Self::kill). There are 300 connections, and `wal_level` is `logical`.
#[derive(Debug)]
pub struct PostgresServer {
    process: Option<ProcessGroup>,
    port: u16,
    programs: PathBuf,
    settings: Vec<(String, String)>,
    data: PathBuf,
    was_killed: bool,
    folder: Folder,
}

impl PostgresServer {
    /// Makes a server in a temporary folder and waits until it answers.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or it does not start; the error has the end of its log.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(&[]).await
    }

    /// As [`start`](Self::start), with settings such as `("fsync", "on")`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start_with(settings: &[(&str, &str)]) -> Result<Self, Error> {
        postgres_programs()?;
        Self::start_in(Folder::temporary("postgres")?, settings).await
    }

    pub(crate) async fn start_in(folder: Folder, settings: &[(&str, &str)]) -> Result<Self, Error> {
        let programs = postgres_programs()?;
        let own = folder.make_for_server("server")?;
        let data = own.join("data");
        let settings = SETTINGS.iter().chain(settings).map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let mut server = Self { process: None, port: 0, programs, settings, data, was_killed: false, folder };
        server.make_data_folder().await?;
        for _ in 1..STARTS_MAX {
            server.port = free_port()?;
            if server.run().await? {
                return Ok(server);
            }
        }
        Err(server.not_started("each port that was tried was taken meanwhile"))
    }

    /// SIGKILL to the server and to all its processes at once, as in a crash; what was not committed is lost.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the server may be half dead; call it again.
    pub async fn kill(&mut self) -> Result<(), Error> {
        let Some(process) = &mut self.process else { return Ok(()) };
        // Those that serve connections would otherwise answer until they notice that the first one is gone.
        let others = children_of(process.id());
        process.kill().await?;
        for other in others {
            send(Signal::Kill, &other.to_string())?;
        }
        self.process = None;
        self.was_killed = true;
        Ok(())
    }

    /// Ends the server in an orderly way; open connections are closed.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the server was asked to end.
    pub async fn stop(&mut self) -> Result<(), Error> {
        if let Some(process) = &mut self.process {
            process.stop(Signal::Interrupt, STOP_PATIENCE).await?;
            self.process = None;
        }
        Ok(())
    }

    /// Starts the server again on the same data and the same port, killed or stopped; one that runs is stopped before.
    ///
    /// # Errors
    /// The server does not start.
    ///
    /// # Cancel safety
    /// Dropped, the server does not run.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.stop().await?;
        // The port, or the memory of a killed server, may be in use for a moment yet.
        let again = async || Ok::<_, Error>(self.run().await?.then_some(()));
        match until(START_PATIENCE, again).await? {
            Some(()) => Ok(()),
            None => Err(self.not_started("its port or its memory stayed in use")),
        }
    }

    /// All that it logged, also before it was killed and restarted.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String, Error> {
        self.folder.whole_log(LOG)
    }

    /// The address of the database `postgres`, as its superuser.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The address of a database, as the superuser.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{}", self.port, escaped(database))
    }

    /// The port of 127.0.0.1 that it listens on; a restart keeps it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with its data and its log.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the server's own files, with the number of its process in `postmaster.pid`.
    pub fn data_folder(&self) -> &Path {
        &self.data
    }

    /// Makes an empty database and returns its address.
    ///
    /// # Errors
    /// There is one of this name, or the server does not answer.
    ///
    /// # Cancel safety
    /// Dropped, the database may be there or not.
    pub async fn create_database(&self, name: &str) -> Result<String, Error> {
        psql(&self.url(), &format!("CREATE DATABASE {}", quoted(name))).await?;
        Ok(self.url_of(name))
    }

    /// Lets the server go on without an owner.
    pub(crate) fn leave_running(mut self) -> Option<RunningProcess> {
        let data = self.data.display().to_string();
        self.process.take().map(|mut process| RunningProcess::leave(&mut process, data))
    }

    async fn make_data_folder(&self) -> Result<(), Error> {
        let mut command = unprivileged(&self.programs.join("initdb"))?;
        command.arg("-D").arg(&self.data);
        command.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions"]);
        // Not SIGKILL: the server that it runs inside has shared memory to give back.
        let mut process = self.folder.run(command, LOG, Signal::Term)?;
        let status = process.wait().await?;
        if !status.success() {
            return Err(self.not_started(&format!("initdb ended with {status}")));
        }
        let access = self.data.join("pg_hba.conf");
        fs::write(&access, ACCESS).map_err(Error::system(format!("write {}", access.display())))
    }

    /// Runs the server once: whether it answers, or its port or its memory is still in use.
    async fn run(&mut self) -> Result<bool, Error> {
        let mut command = unprivileged(&self.programs.join("postgres"))?;
        command.arg("-D").arg(&self.data).args(["-p", &self.port.to_string(), "-k", ""]);
        command.args(["-c", "listen_addresses=127.0.0.1"]);
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        // SIGQUIT is its immediate end: the others end too, and the shared memory is given back.
        let mut process = self.folder.run(command, LOG, Signal::Quit)?;
        let log = self.folder.path().join(LOG);
        // A standby never accepts anything else.
        let is_standby = self.data.join("standby.signal").exists();
        let kind = if is_standby { "read-only connections" } else { "connections" };
        let ready = format!("database system is ready to accept {kind}");
        let look = async || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            if text.contains(&ready) {
                return Ok::<_, Error>(Some(true));
            }
            Ok(process.ended()?.map(|_| false))
        };
        match until(START_PATIENCE, look).await? {
            Some(true) => {
                self.process = Some(process);
                self.was_killed = false;
                Ok(true)
            }
            Some(false) => {
                let text = fs::read_to_string(&log).unwrap_or_default();
                let in_use =
                    says_port_is_taken(&text) || text.contains("is still in use") || text.contains("lock file");
                if in_use { Ok(false) } else { Err(self.not_started("it ended")) }
            }
            None => Err(self.not_started("it was not ready within a minute")),
        }
    }

    fn not_started(&self, reason: &str) -> Error {
        Error::Start { server: SERVER, reason: reason.to_owned(), log: self.folder.log_end(LOG) }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if !self.was_killed {
            return;
        }
        // A killed server leaves a piece of shared memory, whose number is the last word of the file's seventh line.
        let lock = fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default();
        if let Some(memory) = lock.lines().nth(6).and_then(|line| line.split_whitespace().last()) {
            let mut command = Command::new("ipcrm");
            let _ = command.args(["-m", memory]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

/// Runs SQL by `psql` on a connection of its own, and returns what it prints: a line for each row, `|` between columns.
///
/// # Errors
/// The server does not answer, or refuses.
///
/// # Cancel safety
/// Dropped, the SQL may be run or not.
pub async fn psql(url: &str, statement: &str) -> Result<String, Error> {
    Url::parse(url)?;
    let mut command = Command::new(postgres_programs()?.join("psql"));
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, "-d", url]);
    command.stdin(Stdio::null()).env("PGCONNECT_TIMEOUT", "10");
    let run = tokio::task::spawn_blocking(move || command.output());
    let output = run.await.map_err(std::io::Error::other).flatten().map_err(Error::system("run `psql`"))?;
    if !output.status.success() {
        let answer = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Refused { asked: format!("`{statement}`"), answer });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A name as SQL takes it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The processes that `parent` started, where the system lists them.
fn children_of(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |id: &u32| {
        let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // Behind the name, which is in brackets and may have anything in it: the state, then the parent.
        let parent_of = text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parent_of == Some(parent)
    };
    ids.filter(is_child).collect()
}
