use std::fmt;
use std::marker::PhantomData;

use super::locked_entity::{LockedEntity, OfStep};
use crate::step::{Codec, Step, StepOptions, codec};
use crate::store::Entity;

/// A semantic lock that a saga takes: see
/// [`SagaBuilder::semantic_lock`](crate::saga::SagaBuilder::semantic_lock).
///
/// ```
/// use saga_core::SemanticLock;
///
/// struct Credit;
///
/// impl SemanticLock for Credit {
///     const NAME: &'static str = "credit";
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a semantic lock",
    label = "no saga can take it",
    note = "give it a name: `impl saga_core::SemanticLock for {Self} {{ const NAME: &'static str = \"..\"; }}`"
)]
pub trait SemanticLock: Send + Sync + 'static {
    /// The name of the step that takes it: `[a-z0-9-]`, up to 40 bytes.
    const NAME: &'static str;
}

/// The entities of a lock with their fencing tokens, as a parameter of a step.
///
/// `Locked` without an argument is the lock that the step itself has with `#[saga_step(lock = ..)]`; the compensation of
/// such a step may take it, too. `Locked<Credit>` is the semantic lock `Credit` of the saga, as a parameter of a later step
/// or of a closure of the saga's definition. If that lock is taken in an arm of a choice, the parameter is an
/// `Option<Locked<Credit>>`. In a test, make one with [`Locked::for_test`].
///
/// As a [`Step`], `Locked<Credit>` names the step that takes the semantic lock, for example in a migration.
pub struct Locked<L = OfStep> {
    entities: Vec<LockedEntity>,
    lock: PhantomData<fn() -> L>,
}

impl<L> Locked<L> {
    pub(in crate::step) fn new(entities: Vec<LockedEntity>) -> Self {
        Self { entities, lock: PhantomData }
    }

    /// Entities that are locked, with their tokens.
    pub fn for_test(entities: impl IntoIterator<Item = (Entity, u64)>) -> Self {
        Self::new(entities.into_iter().map(|(entity, token)| LockedEntity { entity, token }).collect())
    }

    /// The entities with their tokens, in the order of their bytes.
    pub fn entities(&self) -> &[LockedEntity] {
        &self.entities
    }

    /// The fencing token of an entity; `None` if the lock does not have the entity.
    pub fn token_of(&self, entity: &Entity) -> Option<u64> {
        self.entities.iter().find(|locked| locked.entity == *entity).map(|locked| locked.token)
    }
}

#[diagnostic::do_not_recommend]
impl<L: SemanticLock> Step for Locked<L> {
    type Input = ();
    type Output = Vec<LockedEntity>;

    const NAME: &'static str = L::NAME;
    const OPTIONS: StepOptions = StepOptions::DEFAULT.no_compensation();
    const INPUT: Codec<()> = codec::<()>();
    const OUTPUT: Codec<Vec<LockedEntity>> = codec::<Vec<LockedEntity>>();
}

impl<L> Clone for Locked<L> {
    fn clone(&self) -> Self {
        Self::new(self.entities.clone())
    }
}

impl<L> fmt::Debug for Locked<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").field("entities", &self.entities).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Credit;

    impl SemanticLock for Credit {
        const NAME: &'static str = "credit";
    }

    #[test]
    fn a_token_is_found_by_its_entity() {
        let locked = Locked::<Credit>::for_test([(Entity::new("account", 7), 41), (Entity::new("order", 7), 42)]);
        assert_eq!(locked.token_of(&Entity::new("order", 7)), Some(42));
        assert_eq!(locked.token_of(&Entity::new("order", 8)), None);
        assert_eq!(locked.entities().len(), 2);
    }
}
