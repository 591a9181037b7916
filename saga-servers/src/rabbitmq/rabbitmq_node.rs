//! What a RabbitMQ node needs beside its broker: ports, Erlang's port mapper, and the other nodes of its cluster.

use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::folder::Folder;
use crate::ports::free_port;
use crate::process::ProcessGroup;
use crate::programs::program;
use crate::signal::Signal;

pub(crate) const SERVER: &str = "RabbitMQ";
pub(crate) const EPMD_LOG: &str = "epmd.log";

/// What makes a node one of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Membership {
    /// What nodes know each other by.
    pub(crate) cookie: String,
    /// The port of the cluster's port mapper.
    pub(crate) port_mapper: u16,
    /// The name of a node that is there, which a new one joins.
    pub(crate) joins: Option<String>,
    /// After how much silence a node gives another one up (`net_ticktime`), in whole seconds.
    pub(crate) tick_time: Duration,
}

impl Membership {
    /// A node that was frozen comes back with another idea of the cluster than the others have. It is to find that out and to
    /// start anew, which RabbitMQ's default (`ignore`) leaves to a person.
    pub(crate) fn settings(&self, own_name: &str) -> String {
        let settings =
            format!("net_ticktime = {}\ncluster_partition_handling = pause_minority\n", self.tick_time.as_secs());
        let Some(joined) = &self.joins else { return settings };
        format!(
            "{settings}\
             cluster_formation.peer_discovery_backend = classic_config\n\
             cluster_formation.classic_config.nodes.1 = {joined}\n\
             cluster_formation.classic_config.nodes.2 = {own_name}\n"
        )
    }
}

/// The ports of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) amqp: u16,
    pub(crate) amqps: u16,
    pub(crate) management: u16,
    pub(crate) distribution: u16,
    pub(crate) port_mapper: u16,
}

impl Ports {
    pub(crate) fn free() -> Result<Self, Error> {
        let ports = [free_port()?, free_port()?, free_port()?, free_port()?, free_port()?];
        let [amqp, amqps, management, distribution, port_mapper] = ports;
        Ok(Self { amqp, amqps, management, distribution, port_mapper })
    }
}

/// Starts Erlang's port mapper on a port of its own.
pub(crate) fn run_port_mapper(folder: &Folder, port: u16) -> Result<ProcessGroup, Error> {
    let mut command = Command::new(program("epmd", SERVER, "rabbitmq-server")?);
    command.args(["-port", &port.to_string(), "-address", "127.0.0.1"]);
    folder.run(command, EPMD_LOG, Signal::Kill)
}
