//! The lanes of the outbox.

use crate::key::Tenant;

/// How many lanes the outbox has.
pub const LANES: u8 = 64;

/// The lane of an ordering key: the same in every process and every version.
///
/// The hash is FNV-1a (Fowler, Noll and Vo), because it is short enough to be written again in SQL.
pub fn lane_of(tenant: &Tenant, aggregate_type: &str, aggregate_id: &str) -> u8 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in [tenant.as_str(), aggregate_type, aggregate_id] {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    // The high bits depend on every byte of the text.
    (hash >> 58) as u8
}
