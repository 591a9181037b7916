//! Three private Redis servers that are one cluster.

use std::time::Duration;

use crate::error::Error;
use crate::redis::redis::RedisServer;
use crate::wait::until;

/// How long the nodes may take to agree on who has which slots.
const PATIENCE: Duration = Duration::from_mins(1);

/// The hash slots of a Redis cluster.
const SLOTS: usize = 16_384;

/// A cluster of three Redis servers on free ports, each with a third of the hash slots and without replicas.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// How many nodes it has.
    pub const NODES: usize = 3;

    /// Starts the nodes and waits until each says that the cluster is whole.
    ///
    /// # Errors
    /// Redis is not installed, or a node does not start.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start() -> Result<Self, Error> {
        let settings = [("cluster-enabled", "yes"), ("cluster-node-timeout", "5000")];
        let mut nodes = Vec::new();
        for _ in 0..Self::NODES {
            nodes.push(RedisServer::start_with(&settings).await?);
        }
        let cluster = Self { nodes };
        cluster.join().await?;
        cluster.settled().await?;
        Ok(cluster)
    }

    /// The addresses of the nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// The nodes: each can be killed, frozen and restarted by itself.
    pub fn nodes_mut(&mut self) -> &mut [RedisServer] {
        &mut self.nodes
    }

    /// The nodes.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// Gives the hash slot and its keys from one node to another.
    ///
    /// # Errors
    /// A node does not answer, or refuses.
    ///
    /// # Cancel safety
    /// Dropped, the slot may be on its way; call it again.
    pub async fn move_slot(&self, slot: u16, from: usize, to: usize) -> Result<(), Error> {
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let (source_id, target_id) =
            (source.command(&["CLUSTER", "MYID"]).await?, target.command(&["CLUSTER", "MYID"]).await?);
        let slot = slot.to_string();
        target.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id]).await?;
        source.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id]).await?;
        let keys = source.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "1000"]).await?;
        for key in keys.lines() {
            let port = target.port().to_string();
            source.command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]).await?;
        }
        for node in [target, source].into_iter().chain(&self.nodes) {
            node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]).await?;
        }
        Ok(())
    }

    /// Waits until each node says that the cluster is whole.
    ///
    /// # Errors
    /// It is not within a minute.
    ///
    /// # Cancel safety
    /// Dropped, nothing changed.
    pub async fn settled(&self) -> Result<(), Error> {
        let look = async || {
            for node in &self.nodes {
                // One that is just starting does not answer.
                let state = node.command(&["CLUSTER", "INFO"]).await.unwrap_or_default();
                let is_whole = ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3"];
                if !is_whole.iter().all(|part| state.contains(part)) {
                    return Ok(None);
                }
            }
            Ok::<_, Error>(Some(()))
        };
        match until(PATIENCE, look).await? {
            Some(()) => Ok(()),
            None => Err(self.nodes[0].not_started("the nodes of the cluster did not agree within a minute")),
        }
    }

    /// Does what `redis-cli --cluster create` does.
    async fn join(&self) -> Result<(), Error> {
        for (nth, node) in self.nodes.iter().enumerate() {
            let (first, end) = (nth * SLOTS / Self::NODES, (nth + 1) * SLOTS / Self::NODES);
            let (first, last) = (first.to_string(), (end - 1).to_string());
            node.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).await?;
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(nth + 1).to_string()]).await?;
        }
        for node in &self.nodes[1..] {
            let bus = node.command(&["CONFIG", "GET", "cluster-port"]).await?;
            let bus = bus.lines().last().unwrap_or_default().to_owned();
            let port = node.port().to_string();
            self.nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await?;
        }
        Ok(())
    }
}
