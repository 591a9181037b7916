//! Three private RabbitMQ brokers that are one cluster.

use std::time::Duration;

use crate::error::Error;
use crate::folder::Folder;
use crate::ports::free_port;
use crate::process::ProcessGroup;
use crate::rabbitmq::management::Management;
use crate::rabbitmq::rabbitmq::RabbitMqServer;
use crate::rabbitmq::rabbitmq_node::{Membership, run_port_mapper};
use crate::url::escaped;
use crate::wait::until;

/// How long the nodes may take to see each other, and a queue to have a leader.
///
/// A node that gave the cluster up starts anew, which takes a minute on a machine with more to do.
const PATIENCE: Duration = Duration::from_mins(5);

/// How long a node may take to pause when it comes back to a cluster that gave it up.
const PAUSE_PATIENCE: Duration = Duration::from_secs(10);

/// A cluster of three RabbitMQ nodes on free ports, with a port mapper and a cookie of their own.
///
/// It takes half a minute to start on an idle machine, and half a gigabyte: only what needs several nodes uses it. Each node
/// is killed, frozen, stopped and restarted by itself; it finds the others again.
#[derive(Debug)]
pub struct RabbitMqCluster {
    // The order of the fields is the order in which they end.
    nodes: Vec<RabbitMqServer>,
    #[expect(dead_code, reason = "it is there to be dropped")]
    port_mapper: ProcessGroup,
    #[expect(dead_code, reason = "it is there to be dropped")]
    folder: Folder,
}

impl RabbitMqCluster {
    /// How many nodes it has: of three, one may be away.
    pub const NODES: usize = 3;

    /// The `net_ticktime` of the nodes, which is 60 s if it is not set: after this time, give or take a quarter of it, the
    /// others give up a node that is silent. They then elect other leaders, whatever RabbitMQ's own detector thinks of
    /// the node. A node that is back starts anew (`pause_minority`), or is restarted by [`make_whole`](Self::make_whole).
    pub const TICK_TIME: Duration = Duration::from_secs(8);

    /// Starts the first node, then the others beside each other, and waits until all see each other.
    ///
    /// # Errors
    /// RabbitMQ is not installed, or a node does not start; the error has the end of its log.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start() -> Result<Self, Error> {
        let folder = Folder::temporary("rabbitmq-cluster")?;
        let port = free_port()?;
        let port_mapper = run_port_mapper(&folder, port)?;
        let cookie = format!("SAGA{port}X{}", std::process::id());
        let alone = Membership { cookie, port_mapper: port, joins: None, tick_time: Self::TICK_TIME };
        let first = RabbitMqServer::start_as(alone.clone()).await?;
        let joining = Membership { joins: Some(first.node_name()), ..alone };
        let others = tokio::try_join!(RabbitMqServer::start_as(joining.clone()), RabbitMqServer::start_as(joining))?;
        let cluster = Self { nodes: vec![first, others.0, others.1], port_mapper, folder };
        cluster.settled().await?;
        Ok(cluster)
    }

    /// Waits until all nodes run and see each other.
    ///
    /// # Errors
    /// They do not within five minutes.
    ///
    /// # Cancel safety
    /// Dropped, nothing changed.
    pub async fn settled(&self) -> Result<(), Error> {
        if self.settles_within(PATIENCE).await? { Ok(()) } else { Err(late("the nodes of the cluster see each other")) }
    }

    async fn settles_within(&self, patience: Duration) -> Result<bool, Error> {
        let all_running = async |management: &Management| {
            // One that is just starting does not answer.
            let nodes = management.get("nodes").await.unwrap_or_default();
            let running = nodes.as_array().into_iter().flatten().filter(|node| node["running"] == true);
            running.count() == Self::NODES
        };
        let look = async || {
            for node in &self.nodes {
                if !all_running(&node.management()?).await {
                    return Ok(None);
                }
            }
            Ok::<_, Error>(Some(()))
        };
        Ok(until(patience, look).await?.is_some())
    }

    /// Lets every frozen node go on.
    ///
    /// # Errors
    /// A signal cannot be sent. The others were sent all the same.
    pub fn resume_all(&mut self) -> Result<(), Error> {
        self.nodes.iter_mut().map(RabbitMqServer::resume).fold(Ok(()), Result::and)
    }

    /// Lets every frozen node go on, starts every one that does not run, restarts every one that stays partitioned, and waits
    /// until all see each other.
    ///
    /// # Errors
    /// A node does not start, or does not see the others within five minutes.
    ///
    /// # Cancel safety
    /// Dropped, a node may not run.
    pub async fn make_whole(&mut self) -> Result<(), Error> {
        self.resume_all()?;
        for node in &mut self.nodes {
            if !node.is_running()? {
                node.restart().await?;
            }
        }
        for _ in 0..Self::NODES {
            if self.settles_within(PAUSE_PATIENCE).await? {
                return Ok(());
            }
            let Some(number) = self.partitioned().await? else { break };
            self.nodes[number].restart().await?;
        }
        self.settled().await
    }

    /// A node that says that it is partitioned from all others. One that is back from a freeze pauses only if it sees for a
    /// moment that the others are away; if they connect to it at once, it stays apart until it is restarted.
    async fn partitioned(&self) -> Result<Option<usize>, Error> {
        for (number, node) in self.nodes.iter().enumerate() {
            let nodes = node.management()?.get("nodes").await.unwrap_or_default();
            let own = nodes.as_array().into_iter().flatten().find(|it| it["name"] == node.node_name());
            let partitions = own.and_then(|own| own["partitions"].as_array()).map_or(0, Vec::len);
            if partitions + 1 == Self::NODES {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Stops the members that a quorum queue of the default virtual host has on these nodes, and only them: they elect no
    /// leader until [`resume_members`](Self::resume_members).
    ///
    /// # Errors
    /// The first of these nodes does not answer, or the queue has no member on one of them.
    ///
    /// # Panics
    /// There is no node of one of these numbers.
    ///
    /// # Cancel safety
    /// Dropped, the members may be stopped or not.
    pub async fn suspend_members(&self, queue: &str, nodes: &[usize]) -> Result<(), Error> {
        self.tell_members("suspend", queue, nodes).await
    }

    /// Lets members go on that [`suspend_members`](Self::suspend_members) stopped.
    ///
    /// # Errors
    /// Those of `suspend_members`.
    ///
    /// # Panics
    /// There is no node of one of these numbers.
    ///
    /// # Cancel safety
    /// Dropped, the members may go on or not.
    pub async fn resume_members(&self, queue: &str, nodes: &[usize]) -> Result<(), Error> {
        self.tell_members("resume", queue, nodes).await
    }

    async fn tell_members(&self, what: &str, queue: &str, nodes: &[usize]) -> Result<(), Error> {
        let Some(first) = nodes.first() else { return Ok(()) };
        let names: Vec<String> = nodes.iter().map(|node| format!("'{}'", self.nodes[*node].node_name())).collect();
        // The process of a member is named after the virtual host and the queue.
        let told = format!("[sys:{what}({{'{}_{queue}', Node}}) || Node <- [{}]].", escaped("/"), names.join(", "));
        self.nodes[*first].control(&["eval", &told]).await.map(drop)
    }

    /// A node, by its number from 0.
    ///
    /// # Panics
    /// There is none of this number.
    pub fn node(&mut self, number: usize) -> &mut RabbitMqServer {
        &mut self.nodes[number]
    }

    /// The address of the default virtual host with all nodes as hosts, the one of this number first.
    ///
    /// # Panics
    /// There is none of this number.
    pub fn url_from(&self, first: usize) -> String {
        let (behind, before) = self.nodes.split_at(first);
        let hosts: Vec<String> = before.iter().chain(behind).map(RabbitMqServer::address).collect();
        format!("amqp://guest:guest@{}/{}", hosts.join(","), escaped("/"))
    }

    /// The number of the node that leads a quorum queue of the default virtual host, as the node of number `asked` knows it.
    ///
    /// # Errors
    /// That node does not answer, or there is no leader within five minutes.
    ///
    /// # Panics
    /// There is no node of this number.
    ///
    /// # Cancel safety
    /// Dropped, nothing changed.
    pub async fn leader_of(&self, queue: &str, asked: usize) -> Result<usize, Error> {
        let management = self.nodes[asked].management()?;
        let path = format!("queues/{}/{}", escaped("/"), escaped(queue));
        let look = async || {
            let queue = management.get(&path).await.unwrap_or_default();
            let leader = queue["leader"].as_str().map(str::to_owned);
            Ok::<_, Error>(self.nodes.iter().position(|node| Some(node.node_name()) == leader))
        };
        until(PATIENCE, look).await?.ok_or_else(|| late("the queue has a leader"))
    }

    /// Waits until a quorum queue of the default virtual host runs on every node, as the node of number `asked` knows it. A
    /// node that was restarted is there before its queues are, and the loss of another one would leave them no quorum.
    ///
    /// # Errors
    /// That node does not answer, or the queue is not whole within five minutes.
    ///
    /// # Panics
    /// There is no node of this number.
    ///
    /// # Cancel safety
    /// Dropped, nothing changed.
    pub async fn is_whole(&self, queue: &str, asked: usize) -> Result<(), Error> {
        let management = self.nodes[asked].management()?;
        let path = format!("queues/{}/{}", escaped("/"), escaped(queue));
        let look = async || {
            let queue = management.get(&path).await.unwrap_or_default();
            let online = queue["online"].as_array().map_or(0, Vec::len);
            Ok::<_, Error>((online == Self::NODES).then_some(()))
        };
        until(PATIENCE, look).await?.ok_or_else(|| late("the queue runs on every node"))
    }
}

fn late(what: &str) -> Error {
    Error::System { doing: format!("wait until {what}"), source: std::io::ErrorKind::TimedOut.into() }
}
