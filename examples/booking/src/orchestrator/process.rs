//! The orchestrator in a process of its own, as this process sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, watch};

use super::orchestrator::Orchestrator;
use super::program::{Asked, PROGRAM, Said};
use crate::broker::Address;
use crate::request::BookingRequest;

/// The process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    asks: Mutex<ChildStdin>,
    said: watch::Receiver<Heard>,
}

/// What the process has said.
#[derive(Debug, Default)]
struct Heard {
    is_started: bool,
    booked: BTreeSet<String>,
    outcomes: BTreeMap<String, String>,
    closed: BTreeMap<String, String>,
}

impl Process {
    /// Starts `program` as the orchestrator on this file. It continues the sagas in it.
    pub async fn start(program: &Path, file: &Path, broker: &Address, seats: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.arg(PROGRAM).arg("--file").arg(file).args(["--broker", &broker.url, "--seats", seats]);
        command.envs(broker.environment.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let asks = child.stdin.take().context("the orchestrator has no input")?;
        let output = child.stdout.take().context("the orchestrator has no output")?;
        let (says, mut said) = watch::channel(Heard::default());
        tokio::spawn(hear(output, says));
        if said.wait_for(|heard| heard.is_started).await.is_err() {
            bail!("the orchestrator did not start: {}", child.wait().await?);
        }
        Ok(Self { child, asks: Mutex::new(asks), said })
    }

    /// Waits until the process has said it.
    async fn hears(&self, find: impl Fn(&Heard) -> Option<&String>) -> anyhow::Result<String> {
        let mut said = self.said.clone();
        let heard = said.wait_for(|heard| find(heard).is_some()).await.context("the orchestrator has ended")?;
        find(&heard).cloned().context("the orchestrator took it back")
    }
}

async fn hear(output: ChildStdout, says: watch::Sender<Heard>) -> anyhow::Result<()> {
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await? {
        let said = serde_json::from_str(&line)?;
        says.send_modify(|heard| match said {
            Said::Started => heard.is_started = true,
            Said::Booked { key } => drop(heard.booked.insert(key)),
            Said::Outcome { key, outcome } => drop(heard.outcomes.insert(key, outcome)),
            Said::Closed { key, outcome } => drop(heard.closed.insert(key, outcome)),
        });
    }
    Ok(())
}

#[async_trait]
impl Orchestrator for Process {
    async fn book(&self, key: &str, request: &BookingRequest) -> anyhow::Result<()> {
        let asked = Asked { key: key.to_owned(), request: request.clone() };
        let line = serde_json::to_string(&asked)? + "\n";
        self.asks.lock().await.write_all(line.as_bytes()).await?;
        self.hears(|heard| heard.booked.get(key)).await.map(drop)
    }

    async fn outcome(&self, key: &str) -> anyhow::Result<String> {
        self.hears(|heard| heard.outcomes.get(key)).await
    }

    async fn closed(&self, key: &str) -> anyhow::Result<String> {
        self.hears(|heard| heard.closed.get(key)).await
    }

    async fn kill(mut self: Box<Self>) -> anyhow::Result<()> {
        // SIGKILL. The file is free when the process is gone.
        Ok(self.child.kill().await?)
    }
}
