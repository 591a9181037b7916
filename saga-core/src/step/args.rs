use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use super::{StepContext, StepOutputs};

/// What the engine holds ready when it calls a step, from which its parameters are read.
#[derive(Debug, Clone, Copy)]
pub struct Args<'a> {
    /// The call: key, attempt, deadline, cancellation, fence, events.
    pub ctx: &'a StepContext,
    /// The application's values.
    pub states: &'a States,
    /// What earlier steps of the saga returned.
    pub outputs: &'a StepOutputs,
}

/// The values of the application that steps take as [`State<T>`](super::State), one of each type.
#[derive(Default, Clone)]
pub struct States {
    values: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl States {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value; one of the same type that was there before is returned.
    pub fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) -> Option<T> {
        let before = self.values.insert(TypeId::of::<T>(), Arc::new(value))?;
        before.downcast_ref::<T>().cloned()
    }

    /// A clone of the value of type `T`.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.values.get(&TypeId::of::<T>())?.downcast_ref::<T>().cloned()
    }

    /// Whether there is a value of this type.
    pub fn contains(&self, type_id: TypeId) -> bool {
        self.values.contains_key(&type_id)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").field("count", &self.values.len()).finish()
    }
}
