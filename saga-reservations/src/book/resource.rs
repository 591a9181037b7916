use serde::{Deserialize, Serialize};

use super::name::ResourceName;
use super::reservation::FencingToken;

/// The highest capacity: numbers above it are not exact in JSON.
pub const CAPACITY_MAX: u64 = 1 << 53;

/// A resource as the store has it. `confirmed + held <= capacity` holds at any moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Resource {
    /// Its name.
    pub name: ResourceName,
    /// How many units there are.
    pub capacity: u64,
    /// How many belong to confirmed reservations.
    pub confirmed: u64,
    /// How many are kept for holds. A hold that has expired counts until it is swept, which happens before a request is
    /// refused for lack of units.
    pub held: u64,
    /// The highest token that was given out.
    pub last_token: FencingToken,
    /// Whether it is the resource of a unique intent.
    pub is_unique: bool,
}

impl Resource {
    /// A resource of which nothing is taken.
    pub(crate) fn new(name: ResourceName, capacity: u64, is_unique: bool) -> Self {
        Self { name, capacity, confirmed: 0, held: 0, last_token: FencingToken(0), is_unique }
    }

    /// The units that can be reserved.
    pub fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.taken())
    }

    /// The units that are confirmed or held.
    pub fn taken(&self) -> u64 {
        self.confirmed.saturating_add(self.held)
    }
}
