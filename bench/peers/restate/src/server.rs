//! A Restate server of its own, in a temporary folder and on free ports.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use restate_sdk::ingress::{Client, RequestExecutor as _};
use saga_servers::{ProcessGroup, Signal};
use tempfile::TempDir;

use crate::ingress::Ingress;
use crate::package::server_program;

const START_PATIENCE: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(100);

const LOG: &str = "restate.log";
const LOG_LINES_SHOWN: usize = 15;

/// A server that runs; dropped, it ends and its folder goes, and it ends also when this process is killed.
#[derive(Debug)]
pub(crate) struct Server {
    admin: u16,
    ingress: u16,
    // Dropped in this order: the server ends before its folder goes.
    process: ProcessGroup,
    folder: TempDir,
}

impl Server {
    /// Starts one node with all roles, and waits until it answers.
    pub(crate) async fn start(partitions: u16) -> Result<Self> {
        let program = server_program()?;
        let folder = tempfile::Builder::new().prefix("saga-restate-").tempdir()?;
        let [node, admin, ingress] = free_ports()?;
        let log = File::create(folder.path().join(LOG))?;
        let mut command = Command::new(program);
        command.args(["--no-logo", "--listen-mode", "tcp", "--base-dir"]).arg(folder.path().join("data"));
        command.args(["--default-num-partitions", &partitions.to_string(), "--node-name", "bench"]);
        command.args(["--bind-address", &local(node)]);
        command.env("RESTATE_ADMIN__BIND_ADDRESS", local(admin));
        command.env("RESTATE_INGRESS__BIND_ADDRESS", local(ingress));
        command.env("RESTATE_DISABLE_TELEMETRY", "true").env("RESTATE_LOG_FILTER", "warn");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).current_dir(folder.path());
        // It is not asked to shut down in an orderly way: nobody needs its data any more.
        let process = ProcessGroup::spawn(command, Signal::Kill)?;
        let mut server = Self { admin, ingress, process, folder };
        server.wait_until_ready().await?;
        Ok(server)
    }

    /// Tells the server where the service is; it asks there at once what the service can do.
    pub(crate) async fn register(&self, service: SocketAddr) -> Result<()> {
        let body = serde_json::json!({ "uri": format!("http://{service}") }).to_string();
        let uri = format!("http://{}/deployments", local(self.admin));
        let request = Request::builder().method(Method::POST).uri(uri).header("content-type", "application/json");
        let response = Ingress::new().execute(request.body(Bytes::from(body))?).await?;
        let (status, text) = (response.status(), String::from_utf8_lossy(response.body()).into_owned());
        ensure!(status.is_success(), "the Restate server refuses the service: {status}: {text}");
        Ok(())
    }

    /// A client of the server's ingress.
    pub(crate) fn ingress(&self, executor: Ingress) -> Result<Client<Ingress>> {
        let uri: Uri = format!("http://{}", local(self.ingress)).parse()?;
        Ok(Client::new(uri, executor)?)
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let looking = async {
            let client = Ingress::new();
            let paths = [(self.admin, "health"), (self.ingress, "restate/health")];
            loop {
                if let Some(status) = self.process.ended()? {
                    bail!("it ended with {status}");
                }
                let mut are_ready = true;
                for (port, path) in paths {
                    are_ready &= answers(&client, port, path).await;
                }
                if are_ready {
                    return Ok(());
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let looked = tokio::time::timeout(START_PATIENCE, looking).await;
        let looked = looked.context("it was not ready in time").and_then(|ready| ready);
        looked.with_context(|| format!("the Restate server did not start; its log ends with:\n{}", self.log_end()))
    }

    fn log_end(&self) -> String {
        let text = fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
    }
}

async fn answers(client: &Ingress, port: u16, path: &str) -> bool {
    let Ok(request) = Request::get(format!("http://{}/{path}", local(port))).body(Bytes::new()) else { return false };
    client.execute(request).await.is_ok_and(|response| response.status() == StatusCode::OK)
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// Ports that nobody listens on; all are held until the last is found, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("there is no free port")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
