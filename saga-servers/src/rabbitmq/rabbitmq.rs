//! A private RabbitMQ broker.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::certificate::Certificate;
use crate::error::Error;
use crate::folder::Folder;
use crate::ports::{STARTS_MAX, says_port_is_taken};
use crate::process::ProcessGroup;
use crate::programs::rabbitmq_program;
use crate::rabbitmq::management::Management;
use crate::rabbitmq::rabbitmq_node::{EPMD_LOG, Membership, Ports, SERVER, run_port_mapper};
use crate::running::RunningProcess;
use crate::signal::Signal;
use crate::url::escaped;
use crate::wait::until;

const LOG: &str = "rabbitmq.log";
const START_PATIENCE: Duration = Duration::from_mins(10);
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// A RabbitMQ broker on free ports, with its management interface and the user `guest`.
///
/// It takes ten seconds to start on an idle machine. Durable queues and persistent messages survive
/// [`kill`](Self::kill).
#[derive(Debug)]
pub struct RabbitMqServer {
    node: Option<ProcessGroup>,
    /// Erlang's port mapper. Started by us, it is ours to end; the node would leave its own behind. That of a cluster's node
    /// is the cluster's.
    port_mapper: Option<ProcessGroup>,
    membership: Option<Membership>,
    script: PathBuf,
    ports: Ports,
    certificate: Option<Certificate>,
    folder: Folder,
}

impl RabbitMqServer {
    /// Within this time a broker has written down all that it has to know of a queue that was declared.
    ///
    /// RabbitMQ 3.10 answers a declaration before that. Killed in between, it may come back without the queue, or with a
    /// quorum queue that never has a leader: a consumer of it is answered with `INTERNAL_ERROR` until it is deleted.
    pub const QUEUE_SETTLING_TIME: Duration = Duration::from_secs(6);

    /// Makes a broker in a temporary folder and waits until it and its management interface answer.
    ///
    /// # Errors
    /// RabbitMQ is not installed, or it does not start; the error has the end of its log.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start() -> Result<Self, Error> {
        rabbitmq_program("rabbitmq-server")?;
        Self::start_in(Folder::temporary("rabbitmq")?).await
    }

    /// The same, taking connections with TLS as well.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start_with_tls(certificate: Certificate) -> Result<Self, Error> {
        rabbitmq_program("rabbitmq-server")?;
        Self::start_on(Folder::temporary("rabbitmq")?, Some(certificate)).await
    }

    pub(crate) async fn start_in(folder: Folder) -> Result<Self, Error> {
        Self::start_on(folder, None).await
    }

    pub(crate) async fn start_as(membership: Membership) -> Result<Self, Error> {
        let folder = Folder::temporary("rabbitmq")?;
        Self::prepared(folder, None, Some(membership))?.started().await
    }

    async fn start_on(folder: Folder, certificate: Option<Certificate>) -> Result<Self, Error> {
        Self::prepared(folder, certificate, None)?.started().await
    }

    fn prepared(
        folder: Folder,
        certificate: Option<Certificate>,
        membership: Option<Membership>,
    ) -> Result<Self, Error> {
        let script = rabbitmq_program("rabbitmq-server")?;
        let server =
            Self { node: None, port_mapper: None, membership, script, ports: Ports::free()?, certificate, folder };
        for name in ["data", "log"] {
            let path = server.folder.path().join(name);
            fs::create_dir(&path).map_err(Error::system(format!("make the folder {}", path.display())))?;
        }
        if let Some(Membership { cookie, .. }) = &server.membership {
            let path = server.folder.write(".erlang.cookie", cookie)?;
            let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o400);
            fs::set_permissions(&path, only_owner).map_err(Error::system(format!("hide {}", path.display())))?;
        }
        Ok(server)
    }

    async fn started(mut self) -> Result<Self, Error> {
        let server = &mut self;
        for _ in 1..STARTS_MAX {
            if server.run().await? {
                return Ok(self);
            }
            server.ports = Ports::free()?;
        }
        Err(self.not_started("each port that was tried was taken meanwhile"))
    }

    /// SIGKILL to the broker, as in a crash.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the signal was sent all the same.
    pub async fn kill(&mut self) -> Result<(), Error> {
        if let Some(node) = &mut self.node {
            node.kill().await?;
            self.node = None;
        }
        // It would answer for the dead node until it notices.
        if let Some(port_mapper) = &mut self.port_mapper {
            port_mapper.kill().await?;
            self.port_mapper = None;
        }
        Ok(())
    }

    /// Freezes the broker: its connections stay, and nothing answers until [`resume`](Self::resume).
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.node.as_mut().map_or(Ok(()), |node| node.signal(Signal::Stop))
    }

    /// Lets a frozen broker go on.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn resume(&mut self) -> Result<(), Error> {
        self.node.as_mut().map_or(Ok(()), |node| node.signal(Signal::Continue))
    }

    /// Whether its process is there, frozen or not.
    ///
    /// # Errors
    /// The operating system does not say.
    pub fn is_running(&mut self) -> Result<bool, Error> {
        self.node.as_mut().map_or(Ok(false), |node| node.ended().map(|status| status.is_none()))
    }

    /// Ends the broker in an orderly way.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the broker was asked to end.
    pub async fn stop(&mut self) -> Result<(), Error> {
        if let Some(node) = &mut self.node {
            node.stop(Signal::Term, STOP_PATIENCE).await?;
        }
        self.kill().await
    }

    /// Starts the broker again with the same data, name and ports, killed or stopped; one that runs is stopped before.
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
            None => Err(self.not_started("one of its ports stayed in use")),
        }
    }

    /// All that it logged, also before it was killed and restarted.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String, Error> {
        self.folder.whole_log(LOG)
    }

    /// The host and the port that clients connect to.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.amqp)
    }

    /// The name that the nodes of a cluster know it by.
    pub fn node_name(&self) -> String {
        format!("saga{}@localhost", self.ports.amqp)
    }

    /// The address of the default virtual host.
    pub fn url(&self) -> String {
        self.url_of("/")
    }

    /// The address of a virtual host.
    pub fn url_of(&self, vhost: &str) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/{}", self.ports.amqp, escaped(vhost))
    }

    /// The address of the default virtual host with TLS, where it was started with that.
    pub fn tls_url(&self) -> String {
        format!("amqps://guest:guest@localhost:{}/%2F", self.ports.amqps)
    }

    /// The address of the management interface, without a path.
    pub fn management_url(&self) -> String {
        format!("http://guest:guest@127.0.0.1:{}", self.ports.management)
    }

    /// The management interface.
    pub fn management(&self) -> Result<Management, Error> {
        Management::at(&self.management_url())
    }

    /// Makes an empty virtual host and returns its address.
    ///
    /// # Errors
    /// The broker does not answer.
    ///
    /// # Cancel safety
    /// Dropped, the virtual host may be there or not.
    pub async fn create_vhost(&self, name: &str) -> Result<String, Error> {
        self.management()?.create_vhost(name).await?;
        Ok(self.url_of(name))
    }

    /// Runs `rabbitmqctl`, which takes some seconds, for what the management interface cannot do:
    /// `["set_vm_memory_high_watermark", "0.000001"]` raises a memory alarm.
    ///
    /// # Errors
    /// The broker does not run, or refuses.
    ///
    /// # Cancel safety
    /// Dropped, the command goes on.
    pub async fn control(&self, arguments: &[&str]) -> Result<String, Error> {
        let mut command = Command::new(rabbitmq_program("rabbitmqctl")?);
        self.set_environment(&mut command);
        command.args(arguments).stdin(Stdio::null());
        let run = tokio::task::spawn_blocking(move || command.output());
        let output = run.await.map_err(std::io::Error::other).flatten().map_err(Error::system("run `rabbitmqctl`"))?;
        if !output.status.success() {
            let answer = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Refused { asked: format!("`rabbitmqctl {}`", arguments.join(" ")), answer });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Lets the broker go on without an owner: the node first, then what it needs to the end.
    pub(crate) fn leave_running(mut self) -> Vec<RunningProcess> {
        let node_has = self.folder.path().display().to_string();
        let port_mapper_has = format!("-port {}", self.ports.port_mapper);
        let node = self.node.take().map(|mut node| RunningProcess::leave(&mut node, node_has));
        let port_mapper = self.port_mapper.take().map(|mut it| RunningProcess::leave(&mut it, port_mapper_has));
        node.into_iter().chain(port_mapper).collect()
    }

    /// Runs the broker once: whether it answers, or one of its ports was taken.
    async fn run(&mut self) -> Result<bool, Error> {
        self.write_settings()?;
        self.run_port_mapper()?;
        let mut command = Command::new(&self.script);
        self.set_environment(&mut command);
        let mut node = self.folder.run(command, LOG, Signal::Kill)?;
        let log = self.folder.path().join(LOG);
        let look = async || {
            if fs::read_to_string(&log).unwrap_or_default().contains("Server startup complete") {
                return Ok::<_, Error>(Some(true));
            }
            Ok(node.ended()?.map(|_| false))
        };
        match until(START_PATIENCE, look).await? {
            Some(true) => {
                self.node = Some(node);
                // Asked once, so that the first test does not meet an interface that is still warming up.
                self.management()?.get("vhosts").await?;
                Ok(true)
            }
            Some(false) => {
                let texts = [LOG, EPMD_LOG].map(|log| fs::read_to_string(self.folder.path().join(log)));
                let is_taken = texts.into_iter().flatten().any(|text| says_port_is_taken(&text));
                if is_taken { Ok(false) } else { Err(self.not_started("it ended")) }
            }
            None => Err(self.not_started("it was not ready within ten minutes")),
        }
    }

    fn run_port_mapper(&mut self) -> Result<(), Error> {
        if self.membership.is_some() {
            return Ok(());
        }
        self.port_mapper = None;
        self.port_mapper = Some(run_port_mapper(&self.folder, self.ports.port_mapper)?);
        Ok(())
    }

    /// Little memory and little disk, so that a test run raises no alarm by itself, and no log but the one we read.
    fn write_settings(&self) -> Result<(), Error> {
        let Ports { amqp, amqps, management, .. } = self.ports;
        let settings = format!(
            "listeners.tcp.1 = 127.0.0.1:{amqp}\n\
             management.tcp.ip = 127.0.0.1\n\
             management.tcp.port = {management}\n\
             vm_memory_high_watermark.absolute = 512MB\n\
             disk_free_limit.absolute = 50MB\n\
             log.console = true\n\
             log.file = false\n"
        );
        let tls = self.certificate.as_ref().map(|Certificate { certificate, key }| {
            format!(
                "listeners.ssl.1 = 127.0.0.1:{amqps}\n\
                 ssl_options.certfile = {}\n\
                 ssl_options.keyfile = {}\n\
                 ssl_options.verify = verify_none\n\
                 ssl_options.fail_if_no_peer_cert = false\n",
                certificate.display(),
                key.display()
            )
        });
        let member = self.membership.as_ref().map(|membership| membership.settings(&self.node_name()));
        let settings = settings + &tls.unwrap_or_default() + &member.unwrap_or_default();
        self.folder.write("rabbitmq.conf", &settings)?;
        self.folder.write("enabled_plugins", "[rabbitmq_management].\n").map(drop)
    }

    /// The node finds its data by its name, so the name is as lasting as the data.
    fn set_environment(&self, command: &mut Command) {
        let Ports { amqp, distribution, port_mapper, .. } = self.ports;
        let port_mapper = self.membership.as_ref().map_or(port_mapper, |membership| membership.port_mapper);
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).env("LC_ALL", "C.UTF-8");
        // The cookie lies in the home folder.
        command.env("HOME", self.folder.path());
        for (name, file) in [
            ("RABBITMQ_MNESIA_BASE", "data"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_CONFIG_FILE", "rabbitmq.conf"),
            ("RABBITMQ_CONF_ENV_FILE", "no-such-file"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins"),
            ("RABBITMQ_PID_FILE", "pid"),
        ] {
            command.env(name, self.folder.path().join(file));
        }
        command.env("RABBITMQ_NODENAME", self.node_name());
        command.env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1").env("RABBITMQ_NODE_PORT", amqp.to_string());
        command.env("RABBITMQ_DIST_PORT", distribution.to_string());
        command.env("ERL_EPMD_PORT", port_mapper.to_string()).env("ERL_EPMD_ADDRESS", "127.0.0.1");
        // The start script then becomes the node instead of waiting for it.
        command.env("RUNNING_UNDER_SYSTEMD", "true");
    }

    fn not_started(&self, reason: &str) -> Error {
        Error::Start { server: SERVER, reason: reason.to_owned(), log: self.folder.log_end(LOG) }
    }
}
