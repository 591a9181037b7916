//! What sagas lock.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest kind of an entity.
const KIND_BYTES_MAX: usize = 40;

/// The longest id of an entity.
const ID_BYTES_MAX: usize = 200;

/// What stands in front of the kind of an entity that a step locks: locks of steps and semantic locks never meet.
const OF_STEP: &str = "step:";

/// The most entities of one lock.
pub const LOCKED_ENTITIES_MAX: usize = 64;

/// Something of the application that a saga locks: an account, an order. It has a kind of 1 to 40 bytes and an id of 1 to
/// 200 bytes, both without control characters; a kind does not begin with `step:`. Two entities are the same if both are equal; the runtime does not read
/// the rows of the application.
///
/// ```
/// use saga_core::Entity;
///
/// let account = Entity::new("account", 7);
/// assert_eq!(account.to_string(), "account 7");
/// assert_eq!((account.kind(), account.id()), ("account", "7"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entity {
    kind: String,
    id: String,
}

impl Entity {
    /// Names an entity. Whether the name is legal is checked when a saga locks it.
    pub fn new(kind: impl Into<String>, id: impl fmt::Display) -> Self {
        Self { kind: kind.into(), id: id.to_string() }
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its id, unique in its kind.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The entity as the store knows it in the lock of a step.
    pub(crate) fn of_step(self) -> Self {
        Self { kind: format!("{OF_STEP}{}", self.kind), ..self }
    }

    /// Whether it is what a step locks.
    pub(crate) fn is_of_step(&self) -> bool {
        self.kind.starts_with(OF_STEP)
    }

    /// The entity as the application knows it, and whether a step has locked it.
    pub(crate) fn named(&self) -> (Self, bool) {
        match self.kind.strip_prefix(OF_STEP) {
            Some(kind) => (Self { kind: kind.to_owned(), id: self.id.clone() }, true),
            None => (self.clone(), false),
        }
    }

    /// The entities of one lock in the order of their bytes, each once, or what is wrong with them.
    pub(crate) fn checked(mut entities: Vec<Self>) -> Result<Vec<Self>, String> {
        entities.sort_unstable();
        entities.dedup();
        match entities.len() {
            0 => return Err("it names no entity to lock".to_owned()),
            count if count > LOCKED_ENTITIES_MAX => {
                return Err(format!("it names {count} entities; one lock has {LOCKED_ENTITIES_MAX} at most"));
            }
            _ => {}
        }
        let problem = entities.iter().find_map(|entity| {
            problem("kind", &entity.kind, KIND_BYTES_MAX)
                .or_else(|| problem("id", &entity.id, ID_BYTES_MAX))
                .or_else(|| reserved(&entity.kind))
        });
        problem.map_or(Ok(entities), Err)
    }
}

fn problem(part: &str, text: &str, max: usize) -> Option<String> {
    let is_legal = !text.is_empty() && text.len() <= max && !text.chars().any(char::is_control);
    (!is_legal)
        .then(|| format!("the {part} {text:?} of an entity is not 1 to {max} bytes of text without control characters"))
}

fn reserved(kind: &str) -> Option<String> {
    let is_reserved = kind.starts_with(OF_STEP);
    is_reserved
        .then(|| format!("the kind {kind:?} of an entity begins with `{OF_STEP}`, which marks the locks of steps"))
}

impl From<Entity> for Vec<Entity> {
    fn from(entity: Entity) -> Self {
        vec![entity]
    }
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_sorted_and_each_is_there_once() {
        let entities = vec![Entity::new("order", 2), Entity::new("account", 9), Entity::new("order", 2)];
        let checked = Entity::checked(entities).unwrap();
        assert_eq!(checked, [Entity::new("account", 9), Entity::new("order", 2)]);
    }

    #[test]
    fn the_entity_of_a_step_is_another_one() {
        let account = Entity::new("account", 7);
        let of_step = account.clone().of_step();
        assert_ne!(of_step, account);
        assert_eq!(of_step.named(), (account.clone(), true));
        assert_eq!(account.named(), (account, false));
    }

    #[test]
    fn an_entity_needs_a_name_that_can_be_stored() {
        let check = |entities: Vec<Entity>, text: &str| {
            let problem = Entity::checked(entities).unwrap_err();
            assert!(problem.contains(text), "{problem}");
        };
        check(Vec::new(), "names no entity");
        check(vec![Entity::new("", 1)], "the kind \"\"");
        check(vec![Entity::new("account", "a\0b")], "the id \"a\\0b\"");
        check(vec![Entity::new("account", "x".repeat(201))], "1 to 200 bytes");
        check(vec![Entity::new("step:account", 1)], "begins with `step:`");
        check((0..65).map(|id| Entity::new("account", id)).collect(), "65 entities");
    }
}
