//! What is run.

use std::time::Duration;

use order_rig::outside::LateCalls;

use crate::world::{Programs, Transport};

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The plan follows from it, and so do the orders and what befalls calls.
    pub seed: u64,
    /// For how long there are faults.
    pub length: Duration,
    /// Whose servers.
    pub servers: Where,
    /// What carries the messages; shared servers have RabbitMQ only.
    pub transport: Transport,
    /// Whether what has ended is archived and purged, after seconds.
    pub purges: bool,
    /// What becomes of calls that land after their undo.
    pub late_calls: LateCalls,
    /// Under how many of a thousand keys calls outside are held.
    pub held_per_mille: u32,
    /// How many orders there are at least whose payment is held past its undo.
    pub held_past_undo: usize,
    /// Whether each fault is printed as it comes.
    pub is_shown: bool,
    /// The programs that are run.
    pub programs: Programs,
}

/// Whose servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// Servers of their own, which are killed as well.
    Own,
    /// Those whose addresses are in the environment; only replicas are killed.
    Shared,
}
