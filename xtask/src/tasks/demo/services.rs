//! `cargo xtask demo services`: the order saga as three services, on private servers.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use saga_servers::{PostgresServer, Signal};
use tempfile::TempDir;

use super::broker::{Broker, Transport};
use super::started::{Started, program};
use crate::interrupt::{run_in_group, run_interruptibly};
use crate::phases::{Phases, shown};
use crate::tasks::packages::server_packages;
use crate::tasks::prerequisites::c_compiler;
use crate::workspace::root;

/// The real orders and their products.
const ORDERS: &str = "examples/order-saga/data/northwind-orders.jsonl";
const PRODUCTS: &str = "examples/order-saga/data/northwind-products.jsonl";
/// The services, each with a database of its name.
const SERVICES: [&str; 3] = ["payments", "shipping", "orders"];
/// How many processes each service has at first; the run of the orders is one more of the service of the orders.
const REPLICAS: usize = 2;

/// What to show.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum Demo {
    /// 830 orders through three services on PostgreSQL and a broker, of two replicas each.
    Services {
        /// The broker between the services.
        #[arg(long, value_enum, default_value_t = Transport::Rabbitmq)]
        transport: Transport,
    },
}

/// Installs what is missing, runs the services on private servers, and ends everything again.
pub(crate) fn demo(demo: Demo) -> Result<()> {
    let Demo::Services { transport } = demo;
    let mut phases = Phases::of("demo services");
    phases.run("prerequisites", || Ok(format!("{}; {}", c_compiler()?, server_packages()?)))?;
    run_interruptibly(run_all(&mut phases, transport))
}

/// What can be interrupted at any moment: all that was started ends when this is dropped, the processes before the
/// servers that they use.
async fn run_all(phases: &mut Phases, transport: Transport) -> Result<()> {
    let mut servers = None;
    let build = async {
        let (postgres, ()) = tokio::try_join!(postgres(), run_in_group(transport.build_command()))?;
        let broker = Broker::start(transport).await?;
        println!("the broker {}", broker.url());
        servers = Some(Servers { postgres, broker });
        Ok(String::new())
    };
    phases.wait("build and start servers", build).await?;
    let servers = servers.context("the servers did not start")?;
    let mut company = Company::of(&servers)?;
    phases.wait("start services", company.start()).await?;
    phases.wait("830 orders", company.run_orders()).await?;
    phases.wait("verify", company.verify()).await?;
    phases.run("result", || company.show())?;
    phases.wait("stop services", company.stop()).await?;
    phases.run("stop servers", || {
        drop(servers);
        Ok(String::new())
    })
}

/// A server with a database for each service.
async fn postgres() -> Result<PostgresServer> {
    let postgres = PostgresServer::start().await?;
    for service in SERVICES {
        postgres.create_database(service).await?;
    }
    println!("PostgreSQL {}", postgres.url());
    Ok(postgres)
}

/// A database for each service, and the broker between them.
struct Servers {
    postgres: PostgresServer,
    broker: Broker,
}

/// All processes, in a temporary folder. What they say on standard error is in a file each.
struct Company<'a> {
    servers: &'a Servers,
    // The processes end before their folder is removed.
    replicas: Vec<Started>,
    outside: Option<Started>,
    address: String,
    folder: TempDir,
}

impl<'a> Company<'a> {
    fn of(servers: &'a Servers) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("saga-demo-").tempdir().context("cannot make a folder")?;
        Ok(Self { servers, replicas: Vec::new(), outside: None, address: String::new(), folder })
    }

    async fn start(&mut self) -> Result<String> {
        let outside = ["outside", "--listen", "127.0.0.1:0", "--store", &self.store("orders")];
        let mut outside = self.begin("outside", &outside)?;
        let said = self.ready(&mut outside).await?;
        self.outside = Some(outside);
        said.strip_prefix("listening on ")
            .context("the services outside do not say where they are")?
            .clone_into(&mut self.address);
        println!("the gateway and the carrier are at {}", self.address);
        // All at once: over Kafka, each that joins a group later makes the group settle again.
        let mut starting = Vec::new();
        for service in SERVICES {
            for replica in 1..=REPLICAS {
                starting.push(self.begin(&format!("{service}-{replica}"), &self.service(service))?);
            }
        }
        for started in &mut starting {
            let said = self.ready(started).await?;
            println!("{said} (process {})", started.process.id());
        }
        self.replicas = starting;
        Ok(format!("{} processes", self.replicas.len() + 1))
    }

    /// Starts a process, with a file for what it says on standard error.
    fn begin(&self, name: &str, args: &[impl AsRef<str>]) -> Result<Started> {
        let errors = errors_of(name, &self.folder);
        let file = File::create(&errors).with_context(|| format!("cannot write {}", errors.display()))?;
        Started::begin(name, self.command(args), file.into())
    }

    /// Waits until a process is ready: what it said of that.
    async fn ready(&self, started: &mut Started) -> Result<String> {
        let ready = started.ready().await;
        ready.with_context(|| std::fs::read_to_string(errors_of(&started.name, &self.folder)).unwrap_or_default())
    }

    /// The run shows its progress and its result itself.
    async fn run_orders(&mut self) -> Result<String> {
        let data = |file| root().join(file).display().to_string();
        let mut args = self.service("orders");
        args.extend(["--orders".to_owned(), data(ORDERS), "--products".to_owned(), data(PRODUCTS)]);
        run_in_group(self.command(&args)).await?;
        self.all_run()?;
        Ok(String::new())
    }

    async fn verify(&self) -> Result<String> {
        let stores = ["orders", "payments", "shipping"].map(|service| self.store(service));
        let stores = stores.iter().flat_map(|store| ["--store", store]);
        let args: Vec<&str> = ["verify", "--within", "30s"].into_iter().chain(stores).collect();
        run_in_group(self.command(&args)).await?;
        Ok("the books agree, and every service is at rest".to_owned())
    }

    /// One order that the carrier did not take, or only for far too much: its payment was given back. And how much each
    /// service did.
    fn show(&self) -> Result<String> {
        let undone = self.ask("shipping", &["list", "--status", "compensated"])?;
        let hosted = undone.split_whitespace().next();
        if let Some((order, _)) = hosted.and_then(|key| key.split_once('>')) {
            println!("an order that was undone, as the orders saw it:\n{}", self.ask("orders", &["show", order])?);
            let charge = format!("{order}>charge-card");
            println!("and as the payments saw it:\n{}", self.ask("payments", &["show", &charge])?);
        }
        for service in SERVICES {
            println!("{service:<9} {:>4} sagas in its store", self.ask(service, &["list"])?.lines().count());
        }
        Ok(String::new())
    }

    /// Asks every service to end; none may have ended before.
    async fn stop(&mut self) -> Result<String> {
        self.all_run()?;
        for started in &mut self.replicas {
            started.process.signal(Signal::Term)?;
        }
        for started in &mut self.replicas {
            let status = started.process.wait().await?;
            if !status.success() {
                bail!("{} ended with {status}", started.name);
            }
        }
        self.replicas.clear();
        self.outside = None;
        Ok(String::new())
    }

    fn all_run(&mut self) -> Result<()> {
        for Started { name, process, .. } in &mut self.replicas {
            if let Some(status) = process.ended()? {
                bail!(
                    "{name} ended with {status}:\n{}",
                    std::fs::read_to_string(errors_of(name, &self.folder)).unwrap_or_default()
                );
            }
        }
        Ok(())
    }

    /// What the program prints when it is asked about the store of a service.
    fn ask(&self, service: &str, args: &[&str]) -> Result<String> {
        let store = self.store(service);
        let mut command = self.command(&[args, &["--store", &store]].concat());
        let name = shown(&command);
        let output = command.output().with_context(|| format!("cannot run `{name}`"))?;
        if !output.status.success() {
            bail!("`{name}` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn service(&self, service: &str) -> Vec<String> {
        let (store, transport, outside) = (self.store(service), self.servers.broker.url(), self.address.clone());
        let args = ["service", service, "--store", &store, "--transport", &transport, "--outside", &outside];
        args.map(str::to_owned).into()
    }

    fn store(&self, service: &str) -> String {
        self.servers.postgres.url_of(service)
    }

    fn command(&self, args: &[impl AsRef<str>]) -> Command {
        let mut command = Command::new(program("order-rig"));
        command.current_dir(self.folder.path()).args(args.iter().map(AsRef::as_ref));
        command.envs(self.servers.broker.environment());
        command
    }
}

/// The file of what a process says on standard error.
fn errors_of(name: &str, folder: &TempDir) -> PathBuf {
    folder.path().join(format!("{name}.log"))
}
