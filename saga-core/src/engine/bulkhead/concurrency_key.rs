//! Which limits a command counts against.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::machine::Effect;
use crate::saga::Definition;
use crate::store::{ClaimStep, DefinitionId, Store, WorkKind};

/// Which slots and permits a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pool {
    /// Those of steps in transactions, and of steps that the engine runs itself.
    Transactions,
    /// Those of external calls.
    Calls,
}

impl Pool {
    pub(crate) fn of(effect: Effect) -> Self {
        match effect {
            Effect::External => Self::Calls,
            Effect::Transactional | Effect::Remote { .. } | Effect::Own | Effect::Signal => Self::Transactions,
        }
    }
}

/// What a command counts as: commands with the same key share the same limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConcurrencyKey {
    pub(crate) pool: Pool,
    /// The number of the definition's name.
    pub(crate) definition: u32,
    /// The number of the limit that the step set.
    pub(crate) step: Option<u32>,
}

impl ConcurrencyKey {
    /// The flow of a fair queue. Steps that the engine runs itself do not wait behind the calls of their definition.
    pub(crate) fn flow(self) -> u32 {
        2 * self.definition + u32::from(self.pool == Pool::Calls)
    }

    /// Whether the step itself set a limit.
    pub(crate) fn has_step_limit(self) -> bool {
        self.step.is_some()
    }
}

/// The work rows of one definition that have the same key.
#[derive(Debug)]
pub(crate) struct Claimable {
    pub(crate) key: ConcurrencyKey,
    pub(crate) steps: Arc<[ClaimStep]>,
}

/// The limits of one definition.
#[derive(Debug)]
pub(crate) struct DefinitionLimits {
    pub(crate) number: u32,
    /// By step, the limit of the step and of its compensation, as an index of `step_limits`.
    limits: Vec<[Option<u32>; 2]>,
    /// All rows that a claim may find.
    pub(crate) claimable: Vec<Claimable>,
}

/// The limits of all definitions of a runtime.
#[derive(Debug, Default)]
pub(crate) struct ConcurrencyLimits {
    of_definitions: BTreeMap<DefinitionId, DefinitionLimits>,
    /// How many commands each limited step may run at a time.
    pub(crate) step_limits: Vec<usize>,
    /// The same for each definition, by the number of its name.
    pub(crate) definition_limits: Vec<Option<usize>>,
    /// How many definitions have steps of a pool.
    pub(crate) users: [usize; 2],
}

impl ConcurrencyLimits {
    pub(crate) fn of<'a, S: Store>(definitions: impl IntoIterator<Item = &'a Arc<Definition<S>>>) -> Self {
        let mut limits = Self::default();
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut limited: Vec<(&'static str, usize, usize)> = Vec::new();
        let mut uses: Vec<[bool; 2]> = Vec::new();
        for definition in definitions {
            let known = names.iter().position(|name| *name == definition.id.name);
            let number = known.unwrap_or_else(|| {
                names.push(Arc::clone(&definition.id.name));
                limits.definition_limits.push(None);
                uses.push([false; 2]);
                names.len() - 1
            });
            let limit = &mut limits.definition_limits[number];
            // Of two versions the stricter one holds for both.
            *limit = limit.iter().copied().chain(definition.max_concurrent).min();
            let of = DefinitionLimits::new(definition, narrow(number), &mut limited);
            for claimable in &of.claimable {
                uses[number][claimable.key.pool as usize] = true;
            }
            limits.of_definitions.insert(definition.id.clone(), of);
        }
        limits.step_limits = limited.into_iter().map(|(.., limit)| limit).collect();
        limits.users =
            [Pool::Transactions, Pool::Calls].map(|pool| uses.iter().filter(|uses| uses[pool as usize]).count());
        limits
    }

    pub(crate) fn get(&self, definition: &DefinitionId) -> Option<&DefinitionLimits> {
        self.of_definitions.get(definition)
    }

    /// The key of a command for the step with this index, or for an item of it.
    pub(crate) fn concurrency_key(
        &self,
        definition: &DefinitionId,
        step: usize,
        is_undo: bool,
        effect: Effect,
    ) -> ConcurrencyKey {
        let of = self.get(definition);
        let limit = of.and_then(|of| of.limits.get(step)).and_then(|limits| limits[usize::from(is_undo)]);
        ConcurrencyKey {
            pool: Pool::of(effect),
            definition: of.map(|of| of.number).unwrap_or_default(),
            step: limit.filter(|_| matches!(effect, Effect::External | Effect::Transactional)),
        }
    }

    /// Whether the step or the definition sets a limit.
    pub(crate) fn is_limited(&self, key: ConcurrencyKey) -> bool {
        key.has_step_limit() || self.of_definition(key).is_some()
    }

    pub(super) fn of_step(&self, step: u32) -> usize {
        self.step_limits.get(step as usize).copied().unwrap_or(usize::MAX)
    }

    pub(super) fn of_definition(&self, key: ConcurrencyKey) -> Option<usize> {
        self.definition_limits.get(key.definition as usize).copied().flatten()
    }
}

impl DefinitionLimits {
    fn new<S: Store>(definition: &Definition<S>, number: u32, limited: &mut Vec<(&'static str, usize, usize)>) -> Self {
        let (mut all_limits, mut rows) = (Vec::new(), Rows::default());
        for (step, shape) in definition.steps.iter().zip(&definition.shape.steps) {
            let mut limit_of = |is_undo: usize, max: Option<usize>| {
                let wanted = (step.name, is_undo, max?);
                let known = limited.iter().position(|limit| *limit == wanted);
                Some(narrow(known.unwrap_or_else(|| {
                    limited.push(wanted);
                    limited.len() - 1
                })))
            };
            let undo_options = step.undo.as_ref().map(|(_, options)| options);
            let limits =
                [limit_of(0, step.options.max_concurrent), limit_of(1, undo_options.and_then(|of| of.max_concurrent))];
            all_limits.push(limits);
            let undo_effect = step.undo.as_ref().map_or(Effect::Own, |(undo, _)| undo.effect(shape.effect));
            for (kind, effect, limit) in
                [(WorkKind::Do, shape.effect, limits[0]), (WorkKind::Undo, undo_effect, limits[1])]
            {
                let key = ConcurrencyKey { pool: Pool::of(effect), definition: number, step: limit };
                rows.add(key, ClaimStep { kind, step: step.name });
            }
        }
        let key = ConcurrencyKey { pool: Pool::Transactions, definition: number, step: None };
        // The row of a deadline is of no step.
        rows.add(key, ClaimStep { kind: WorkKind::Deadline, step: "" });
        let claimable = rows.0.into_iter().map(|(key, steps)| Claimable { key, steps: steps.into() });
        Self { number, limits: all_limits, claimable: claimable.collect() }
    }
}

/// The rows of a definition that a claim may find, by where they count.
#[derive(Default)]
struct Rows(Vec<(ConcurrencyKey, Vec<ClaimStep>)>);

impl Rows {
    fn add(&mut self, key: ConcurrencyKey, step: ClaimStep) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, steps)) => steps.push(step),
            None => self.0.push((key, vec![step])),
        }
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
