//! The keys in Redis.
//!
//! All keys of a slot have the same hash tag, so that one script may use them in a cluster.

use saga_core::{Entity, Tenant};

/// Entities are spread over so many slots. Each has a counter of tokens. The number is a part of the data in Redis: a change
/// would move entities to other counters.
pub(crate) const SLOTS: u16 = 64;

/// Between the parts of a name, none of which has a control character.
const SEPARATOR: char = '\u{1f}';

/// Where an entity is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) slot: u16,
    name: String,
    tag: String,
}

impl Place {
    pub(crate) fn of(prefix: &str, tenant: &Tenant, entity: &Entity) -> Self {
        let name = [tenant.as_str(), entity.kind(), entity.id()].join(SEPARATOR.encode_utf8(&mut [0; 4]));
        let slot = (fnv1a(name.as_bytes()) % u64::from(SLOTS)) as u16;
        Self { slot, name, tag: format!("{{{prefix}:{slot}}}") }
    }

    /// The epoch of the slot, and the server that it was begun on.
    pub(crate) fn incarnation(&self) -> String {
        [&self.tag, ":incarnation"].concat()
    }

    /// The last counter of the slot.
    pub(crate) fn counter(&self) -> String {
        [&self.tag, ":counter"].concat()
    }

    /// The lock: epoch, counter and holder. It expires with the lease.
    pub(crate) fn lock(&self) -> String {
        [&self.tag, ":lock:", &self.name].concat()
    }

    /// The holders that wait, by their turns.
    pub(crate) fn queue(&self) -> String {
        [&self.tag, ":queue:", &self.name].concat()
    }

    /// Until when each holder that waits must ask again.
    pub(crate) fn waits(&self) -> String {
        [&self.tag, ":waits:", &self.name].concat()
    }
}

/// A hash that is the same in every process and version.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(tenant: &str, kind: &str, id: &str) -> Place {
        Place::of("saga", &Tenant::from_stored(tenant).unwrap(), &Entity::new(kind, id))
    }

    #[test]
    fn an_entity_stays_in_its_slot() {
        let account = place("", "account", "7");
        assert_eq!(account.slot, 7);
        assert_eq!(account.lock(), "{saga:7}:lock:\u{1f}account\u{1f}7");
        assert_eq!(account.counter(), "{saga:7}:counter");
    }

    #[test]
    fn names_that_look_alike_are_different() {
        let all = [place("", "a", "bc"), place("", "ab", "c"), place("a", "b", "c"), place("", "a", "b}c")];
        let locks: std::collections::BTreeSet<_> = all.iter().map(Place::lock).collect();
        assert_eq!(locks.len(), all.len());
    }
}
