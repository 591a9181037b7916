//! The order work on the Restate server and its Rust SDK.
//!
//! A saga is one invocation of a handler, called through the server's HTTP ingress and awaited; each step is a
//! `context.run`, whose result the server writes to its own log, flushed to the disk. A step's row is committed by a
//! connection of ours, so a crash between that commit and the log repeats the step. Restate has no undo of its own: as
//! its guide to sagas advises, the handler catches the terminal error and runs the undos.
//!
//! The server is one node with all roles and its defaults, in a folder of its own: `restate` has the 24 partitions
//! that it comes with, `restate-2` has two, which suits two processors better. The SDK's own server leaves the delay
//! of small packets on, which would cost it most of its speed, so the listening socket is made here, without it.
//!
//! The processor time of the server counts as the client's: it is what this engine spends beside the database.

mod ingress;
mod package;
mod server;
mod service;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use peer_harness::{Business, Job, Measured, Meter, Subject, call_all};
use restate_sdk::prelude::{Endpoint, HttpServer, Json};
use tokio::net::{TcpListener, TcpSocket};

use crate::ingress::Ingress;
use crate::server::Server;
use crate::service::{Orders, OrdersIngressClient};

/// What the server has unless it is told otherwise.
const PARTITIONS: u16 = 24;
const PARTITIONS_FEW: u16 = 2;

const BACKLOG: u32 = 1024;

fn main() -> ExitCode {
    peer_harness::main(&[
        Subject { name: "restate", is_durable: true, run: |job| Box::pin(run(job, PARTITIONS)) },
        Subject { name: "restate-2", is_durable: true, run: |job| Box::pin(run(job, PARTITIONS_FEW)) },
    ])
}

async fn run(job: Job, partitions: u16) -> Result<Measured> {
    let listener = listen()?;
    let address = listener.local_addr()?;
    let orders = Orders { business: Business::connect(&job).await? };
    let serving = HttpServer::new(Endpoint::builder().bind(orders).build()).serve(listener);
    tokio::select! {
        measured = drive(&job, partitions, address) => measured,
        () = serving => bail!("the service ended before its work"),
    }
}

async fn drive(job: &Job, partitions: u16, service: SocketAddr) -> Result<Measured> {
    let server = Server::start(partitions).await?;
    server.register(service).await?;
    let client = Arc::new(OrdersIngressClient::from_client(server.ingress(Ingress::new())?));
    let meter = Meter::start_with(&[server.id()])?;
    let call = move |order| {
        let client = Arc::clone(&client);
        async move { Ok(client.place(Json(order)).call().await?.into_body()?.into_inner()) }
    };
    call_all(job, call).await?;
    meter.stop()
}

/// Connections that are accepted take the setting over from the socket that listens.
fn listen() -> Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_nodelay(true)?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    socket.listen(BACKLOG).context("cannot listen for the server's calls")
}
