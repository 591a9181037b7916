//! The duty of knowing who is alive.

use std::time::Duration;

use async_trait::async_trait;

use super::{Incarnation, MemberId, StoreError};

/// Knowing who is alive.
///
/// # Contract
/// - `S-MEM-1` [`join`](Members::join) makes a member that is alive for `ttl`; its id is above every earlier one.
/// - `S-MEM-2` A member whose last beat is older than its `ttl`, or that left, is dead: what it leased is free at once, and it never lives again.
/// - `S-MEM-3` [`beat`](Members::beat) answers false to a dead member.
/// - `S-MEM-4` Where only one process works on the data, the members of an earlier one are dead from the moment this one opened it.
/// - `S-MEM-5` [`rejoin`](Members::rejoin) joins as [`join`](Members::join) does and, in the same commit, leases to the new member every row that is still leased to the former one and that no transaction holds, each with the epoch, the end of the lease and all else that it has. Rows that somebody else took meanwhile stay with their new owner. The former member is dead from then on.
#[async_trait]
pub trait Members: Send + Sync {
    /// Joins as a new member.
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError>;

    /// Joins anew after this process was taken for dead as `former`, and takes what is left of that member's rows along.
    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError>;

    /// Says that the member is alive for another `ttl`; answers whether it still was.
    async fn beat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError>;

    /// Leaves. What the member still holds counts as given up by an owner that vanished.
    async fn leave(&self, member: MemberId) -> Result<(), StoreError>;
}
