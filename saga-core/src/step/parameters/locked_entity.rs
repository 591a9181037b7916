use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use crate::store::Entity;

/// An entity that a saga or a step has locked, and the fencing token that it got.
///
/// Each grant of an entity has a higher token than all grants of the entity before. A system outside that keeps the
/// highest token that it saw of an entity can refuse calls with a lower one: they come from a saga that has lost the
/// entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedEntity {
    /// The entity.
    #[serde(flatten)]
    pub entity: Entity,
    /// Its fencing token.
    pub token: u64,
}

/// The lock of the step itself, in [`Locked`](crate::step::Locked): that of `#[saga_step(lock = ..)]`.
#[derive(Debug)]
pub struct OfStep(PhantomData<()>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_entity_is_stored_as_one_object() {
        let locked = LockedEntity { entity: Entity::new("account", 7), token: u64::MAX };
        let stored = serde_json::to_string(&locked).unwrap();
        assert_eq!(stored, r#"{"kind":"account","id":"7","token":18446744073709551615}"#);
        assert_eq!(serde_json::from_str::<LockedEntity>(&stored).unwrap(), locked);
    }
}
