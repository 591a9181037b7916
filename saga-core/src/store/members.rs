//! The members: which processes are alive.

use std::time::Duration;

use async_trait::async_trait;

use super::{Incarnation, MemberId, StoreError};

/// Tracks which processes are alive.
///
/// # Contract
/// - `S-MEM-1` [`join`](Members::join) makes a member that is alive for `ttl`; its id is above every earlier one.
/// - `S-MEM-2` A member whose last heartbeat is older than its `ttl`, or that left, is dead: its leases are free at once, and it never becomes alive again.
/// - `S-MEM-3` [`heartbeat`](Members::heartbeat) answers false to a dead member.
/// - `S-MEM-4` Where only one process works on the data, the members of an earlier process are dead as soon as this process has opened the data.
/// - `S-MEM-5` [`rejoin`](Members::rejoin) joins as [`join`](Members::join) does. In the same commit it leases to the new member every row that is still leased to the former member and that no transaction holds; the row keeps its epoch, the end of its lease and all other columns. Rows that another member has taken stay with that member. The former member is dead from then on.
#[async_trait]
pub trait Members: Send + Sync {
    /// Joins as a new member.
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError>;

    /// Joins again after other processes took this process for dead as `former`, and takes over the rows that are still
    /// leased to that member.
    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError>;

    /// Extends the member's life by another `ttl`; answers whether it was still alive.
    async fn heartbeat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError>;

    /// Leaves. The rows that the member still holds count as rows of an owner that vanished.
    async fn leave(&self, member: MemberId) -> Result<(), StoreError>;
}
