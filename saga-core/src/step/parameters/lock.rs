//! The lock of a step, for the time of its calls.

use super::params::sealed::Sealed;
use crate::step::{Args, FromStep, Locked, Needs, StepError};
use crate::store::Entity;

/// What the closure of `lock = ..` returns: an [`Entity`], an array or a `Vec` of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a step can lock",
    label = "the closure of `lock` returns this",
    note = "return an entity, or several: `lock = |charge| Entity::new(\"account\", &charge.account)`"
)]
pub trait IntoEntities {
    #[doc(hidden)]
    fn into_entities(self) -> Vec<Entity>;
}

impl IntoEntities for Entity {
    fn into_entities(self) -> Vec<Entity> {
        vec![self]
    }
}

impl IntoEntities for Vec<Entity> {
    fn into_entities(self) -> Vec<Entity> {
        self
    }
}

impl<const N: usize> IntoEntities for [Entity; N] {
    fn into_entities(self) -> Vec<Entity> {
        self.into()
    }
}

/// The entities that a closure names. The input stands in front, so that the compiler knows what the closure takes.
#[doc(hidden)]
pub fn entities_of<I, E: IntoEntities>(input: &I, entities: impl FnOnce(&I) -> E) -> Vec<Entity> {
    entities(input).into_entities()
}

impl Locked {
    /// A fencing token for all entities of the lock: the highest of their tokens. Each grant of one of the entities before
    /// has a lower one, and each later grant a higher one.
    ///
    /// A system outside that keeps the highest token it saw of an account can refuse calls with a lower one: they come from
    /// a call that was overtaken. Of a lock without entities, which only a test makes, the token is 0.
    pub fn token(&self) -> u64 {
        self.entities().iter().map(|locked| locked.token).max().unwrap_or_default()
    }
}

impl Sealed for Locked {}

impl FromStep for Locked {
    fn needs(needs: &mut Needs) {
        needs.lock = true;
    }

    fn from_step(args: Args<'_>) -> Result<Self, StepError> {
        match args.ctx.locked() {
            [] => Err(StepError::unreadable("its step has no lock")),
            locked => Ok(Self::new(locked.to_vec())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{States, StepContext, StepErrorKind, StepOutputs};

    fn read(ctx: &StepContext) -> Result<Locked, StepError> {
        Locked::from_step(Args { ctx, states: &States::new(), outputs: &StepOutputs::new() })
    }

    #[test]
    fn a_step_reads_the_entities_that_its_call_has_locked() {
        let (account, order) = (Entity::new("account", "ada"), Entity::new("order", 7));
        let ctx = StepContext::for_test("order-7:charge").with_locked([(account.clone(), 41), (order, 40)]);
        let locked = read(&ctx).unwrap();
        assert_eq!((locked.token(), locked.token_of(&account)), (41, Some(41)));
        let error = read(&StepContext::for_test("order-7:charge")).unwrap_err();
        assert_eq!(error.kind(), StepErrorKind::Unreadable);
    }

    #[test]
    fn a_closure_names_one_entity_or_several() {
        let account = |id: &u32| Entity::new("account", id);
        assert_eq!(entities_of(&7, account), [account(&7)]);
        assert_eq!(entities_of(&7, |id| [account(id), account(&(id + 1))]), [account(&7), account(&8)]);
        assert_eq!(entities_of(&2, |count| (0..*count).map(|id| account(&id)).collect::<Vec<_>>()).len(), 2);
    }
}
