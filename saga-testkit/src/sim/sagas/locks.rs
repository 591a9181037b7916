//! What the simulated sagas lock.

use saga_core::{Entity, SemanticLock};

/// How many entities there are. All sagas of a tenant share them.
pub(crate) const ENTITIES: u8 = 2;

/// The entity of that number.
pub(crate) fn entity(number: u8) -> Entity {
    Entity::new("account", number)
}

/// The entity that the step of that place locks.
pub(crate) const fn entity_of_step(place: usize) -> u8 {
    place as u8 % ENTITIES
}

/// A semantic lock on the entity with the number `N`.
pub(crate) struct Hold<const N: usize>;

impl<const N: usize> SemanticLock for Hold<N> {
    const NAME: &'static str = ["credit", "stock"][N];
}

/// A semantic lock on all entities.
pub(crate) struct HoldAll;

impl SemanticLock for HoldAll {
    const NAME: &'static str = "all";
}

/// The entities of the locks, by their names: what another mistake ends too early.
pub(crate) const LOCKS: [&str; 3] = [Hold::<0>::NAME, Hold::<1>::NAME, HoldAll::NAME];
