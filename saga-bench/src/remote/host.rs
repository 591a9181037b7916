//! The other service: a process that the benchmark starts, and that ends with it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use saga_amqp::AmqpTransport;
use saga_core::{Runtime, Service};
use saga_postgres::PostgresStore;
use tokio::task::spawn_blocking;

use super::work::hosted::charge_card;

/// The hidden subcommand that runs the service.
const SUBCOMMAND: &str = "remote-host";
/// What the process says when it is ready.
const READY: &str = "ready";

/// Where the service is.
#[derive(Debug, Args)]
pub(crate) struct HostOptions {
    /// Its database.
    #[arg(long)]
    database: String,
    /// The broker.
    #[arg(long)]
    broker: String,
}

/// Runs the service until its input is closed, which the end of the benchmark does in any case.
pub(crate) fn host(options: &HostOptions) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let payments: Service<PostgresStore> = Service::named("payments").host::<charge_card>().build()?;
        let store = PostgresStore::connect(&options.database).await?;
        let transport = AmqpTransport::connect(&options.broker).await?;
        let runtime = Runtime::builder(store).transport(transport).service(&payments).start().await?;
        println!("{READY}");
        spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        runtime.shutdown().await;
        Ok(())
    })
}

/// The process of the service. It sees its input closed when this is dropped, and ends.
pub(super) struct Host {
    process: Child,
}

impl Host {
    /// Starts it, and waits until it is ready.
    pub(super) async fn start(database: &str, broker: &str) -> Result<Self> {
        let program = std::env::current_exe().context("the benchmark does not know where it lies")?;
        let mut command = Command::new(program);
        command.args([SUBCOMMAND, "--database", database, "--broker", broker]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("the other service cannot be started")?;
        let output = process.stdout.take().context("the other service has no output")?;
        let line = spawn_blocking(|| BufReader::new(output).lines().next().transpose()).await??;
        ensure!(line.as_deref() == Some(READY), "the other service did not start: {line:?}");
        Ok(Self { process })
    }

    /// Ends it in an orderly way.
    pub(super) async fn stop(mut self) -> Result<()> {
        drop(self.process.stdin.take());
        let status = spawn_blocking(move || self.process.wait()).await??;
        ensure!(status.success(), "the other service ended with {status}");
        Ok(())
    }
}
