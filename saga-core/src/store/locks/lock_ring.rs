//! Owners that wait for each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::key::Key;

/// An owner waits for another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitsFor {
    /// The owner that waits.
    pub waits: Key,
    /// The number of its first lock or request: the lower, the older it is.
    pub first: u64,
    /// The owner that it waits for.
    pub holder: Key,
    /// Whether that owner has the entity. If not, it only waits in front.
    pub has: bool,
}

/// The owner that has to stop waiting, if the owner `asking` waits for itself over others, and the owner that it names as the
/// reason: the youngest of those that wait in a ring with it, and the next one in the ring. A store calls it with all waits
/// that can be reached from `asking`.
///
/// A ring of owners that have what the others wait for is ended first: nothing else ends it. A ring that only the order of a
/// queue closes may have ended with that.
pub fn youngest_in_ring(waits: &[WaitsFor], asking: &Key) -> Option<(Key, Key)> {
    let holding: Vec<&WaitsFor> = waits.iter().filter(|wait| wait.has).collect();
    youngest(&holding, asking).or_else(|| youngest(&waits.iter().collect::<Vec<_>>(), asking))
}

fn youngest(waits: &[&WaitsFor], asking: &Key) -> Option<(Key, Key)> {
    let mut holders: BTreeMap<&Key, BTreeSet<&Key>> = BTreeMap::new();
    let mut waiters: BTreeMap<&Key, BTreeSet<&Key>> = BTreeMap::new();
    for wait in waits {
        holders.entry(&wait.waits).or_default().insert(&wait.holder);
        waiters.entry(&wait.holder).or_default().insert(&wait.waits);
    }
    let ahead = reached(&holders, asking);
    let behind = reached(&waiters, asking);
    let is_in_ring = |owner: &Key| ahead.contains(owner) && behind.contains(owner);
    let youngest = waits.iter().filter(|wait| is_in_ring(&wait.waits)).max_by_key(|wait| (wait.first, &wait.waits))?;
    let next = waits.iter().find(|wait| wait.waits == youngest.waits && is_in_ring(&wait.holder))?;
    Some((youngest.waits.clone(), next.holder.clone()))
}

/// Everything that can be reached from an owner, by at least one step.
fn reached<'a>(edges: &BTreeMap<&'a Key, BTreeSet<&'a Key>>, from: &Key) -> BTreeSet<&'a Key> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Key> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(owner) = open.pop() {
        if found.insert(owner) {
            open.extend(edges.get(owner).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    /// The waits, as `waits-for`, or `waits<for` where the other one is only in front. Owners by their age: `a` is the oldest.
    fn check(waits: &[&str], asking: &str, expected: Option<(&str, &str)>) {
        let waits: Vec<WaitsFor> = waits
            .iter()
            .map(|wait| {
                let (waits, holder) = wait.split_once(['-', '<']).unwrap();
                let (first, has) = (u64::from(waits.as_bytes()[0]), wait.contains('-'));
                WaitsFor { waits: key(waits), first, holder: key(holder), has }
            })
            .collect();
        let expected = expected.map(|(youngest, next)| (key(youngest), key(next)));
        assert_eq!(youngest_in_ring(&waits, &key(asking)), expected, "{waits:?}");
    }

    #[test]
    fn the_youngest_of_a_ring_is_found_and_no_other() {
        check(&[], "a", None);
        check(&["a-b", "b-c"], "a", None);
        check(&["a-b", "b-a"], "a", Some(("b", "a")));
        check(&["a-b", "b-a"], "b", Some(("b", "a")));
        check(&["a-c", "c-b", "b-a"], "a", Some(("c", "b")));
        // The youngest of all waits for the ring, and is not part of it.
        check(&["a-b", "b-a", "z-a"], "a", Some(("b", "a")));
        // The owner that asks waits for a ring, and is not part of it.
        check(&["a-b", "b-c", "c-b"], "a", None);
    }

    #[test]
    fn an_owner_that_is_only_in_front_does_not_give_up_for_another_ring() {
        check(&["a-b", "b-a", "c-b", "a<c"], "a", Some(("b", "a")));
        check(&["a<c", "c-b", "b-a"], "a", Some(("c", "b")));
    }

    #[test]
    fn of_two_rings_one_is_found_after_the_other() {
        check(&["a-b", "b-a", "a-c", "c-a"], "a", Some(("c", "a")));
        check(&["a-b", "b-a", "a-c"], "a", Some(("b", "a")));
    }
}
