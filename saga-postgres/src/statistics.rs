use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the store since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Step transactions that committed.
    pub transactions: u64,
    /// Commands in these transactions.
    pub commands: u64,
    /// Step transactions that committed without a savepoint, because none of their handlers needed one.
    pub without_savepoint: u64,
    /// Step transactions that were rolled back whole.
    pub rollbacks: u64,
    /// How often a saga had moved while its step ran, and was decided again.
    pub decided_again: u64,
    /// Connections that were closed, because a step was dropped before it ended.
    pub connections_closed: u64,
    /// Open connections.
    pub connections: u32,
    /// Idle connections.
    pub idle: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) transactions: Counter,
    pub(crate) commands: Counter,
    pub(crate) without_savepoint: Counter,
    pub(crate) rollbacks: Counter,
    pub(crate) decided_again: Counter,
    pub(crate) connections_closed: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, number: usize) {
        self.0.fetch_add(number as u64, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Statistics {
    /// Reads the counters; `cached` connections are idle outside the pool.
    pub(crate) fn read(counters: &Counters, pool: &sqlx::PgPool, cached: usize) -> Self {
        Self {
            transactions: counters.transactions.read(),
            commands: counters.commands.read(),
            without_savepoint: counters.without_savepoint.read(),
            rollbacks: counters.rollbacks.read(),
            decided_again: counters.decided_again.read(),
            connections_closed: counters.connections_closed.read(),
            connections: pool.size(),
            idle: u32::try_from(pool.num_idle() + cached).unwrap_or(u32::MAX),
        }
    }
}
