//! A broker of a test's own, which it may kill.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::wait::until_holds;

/// Nodes are started one at a time: each takes a core for ten seconds.
static SERIAL: Mutex<()> = Mutex::new(());

/// A private RabbitMQ in a temporary folder, on free ports.
pub(crate) struct Node {
    folder: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
    distribution_port: u16,
    names_port: u16,
    process: Mutex<Option<Child>>,
    _serial: MutexGuard<'static, ()>,
}

impl Node {
    pub(crate) async fn start() -> Self {
        Self::start_with("").await
    }

    /// With further lines of settings.
    pub(crate) async fn start_with(further: &str) -> Self {
        let serial = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
        let programs = programs();
        let [port, distribution_port, names_port] = free_ports();
        let folder = tempfile::tempdir().unwrap();
        let node =
            Self { folder, programs, port, distribution_port, names_port, process: Mutex::default(), _serial: serial };
        let settings = format!(
            "listeners.tcp.1 = 127.0.0.1:{port}\nvm_memory_high_watermark.absolute = 512MB\n\
             disk_free_limit.absolute = 50MB\nlog.console = true\nlog.file = false\n{further}"
        );
        for name in ["mnesia", "log"] {
            std::fs::create_dir(node.path(name)).unwrap();
        }
        std::fs::write(node.path("rabbitmq.conf"), settings).unwrap();
        std::fs::write(node.path("enabled_plugins"), "[].").unwrap();
        node.run().await;
        node
    }

    pub(crate) fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port)
    }

    /// Starts the broker on the data that there are, and waits until it takes connections.
    pub(crate) async fn run(&self) {
        let log = std::fs::File::create(self.path("out.log")).unwrap();
        let mut command = self.command("rabbitmq-server");
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        *self.process.lock().unwrap() = Some(command.spawn().expect("RabbitMQ can be started"));
        until_holds("the broker's start", || std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok()).await;
    }

    /// Ends the broker as a power loss would end it.
    pub(crate) fn kill(&self) {
        let pid = std::fs::read_to_string(self.path("pid")).expect("the broker runs");
        let killed = Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
        assert!(killed.success(), "the broker could not be killed");
        self.wait_for_end();
    }

    /// Runs `rabbitmqctl`.
    pub(crate) fn control(&self, arguments: &[&str]) {
        let output = self.command("rabbitmqctl").args(["-n", &self.name()]).args(arguments).output().unwrap();
        assert!(output.status.success(), "rabbitmqctl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn wait_for_end(&self) {
        if let Some(mut process) = self.process.lock().unwrap_or_else(PoisonError::into_inner).take() {
            _ = process.wait();
        }
    }

    fn command(&self, program: &str) -> Command {
        let path = |name: &str| self.path(name).into_os_string();
        let mut command = Command::new(self.programs.join(program));
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("RABBITMQ_NODENAME", self.name())
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", self.port.to_string())
            .env("RABBITMQ_DIST_PORT", self.distribution_port.to_string())
            .env("RABBITMQ_MNESIA_BASE", path("mnesia"))
            .env("RABBITMQ_LOG_BASE", path("log"))
            .env("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf"))
            .env("RABBITMQ_CONF_ENV_FILE", path("none"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("enabled_plugins"))
            .env("RABBITMQ_PID_FILE", path("pid"))
            .env("ERL_EPMD_PORT", self.names_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1");
        command
    }

    fn name(&self) -> String {
        format!("t{}@localhost", self.port)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Ok(pid) = std::fs::read_to_string(self.path("pid")) {
            _ = Command::new("kill").args(["-9", pid.trim()]).status();
            self.wait_for_end();
        }
        // The daemon that knows the node's port outlives it.
        _ = Command::new("epmd").arg("-kill").env("ERL_EPMD_PORT", self.names_port.to_string()).output();
    }
}

/// The folder of the programs themselves: those on the path change to a user of their own.
fn programs() -> PathBuf {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let wrapper = std::env::split_paths(&on_path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join("rabbitmq-server"))
        .find(|path| path.is_file())
        .expect("RabbitMQ is not installed; `apt-get install rabbitmq-server` installs it");
    let real = std::fs::canonicalize(wrapper).unwrap();
    real.parent().map(Path::to_owned).unwrap()
}

fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    // All at once, so that they differ.
    let listeners: [TcpListener; COUNT] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
