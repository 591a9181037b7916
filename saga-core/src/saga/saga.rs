use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::Definition;
use super::graph::mermaid;
use crate::store::Store;

/// A saga definition: its steps, with the input `I` and the result `R`, on a store `S`. Cheap to clone.
///
/// The result is `()` unless the definition says what the saga [returns](super::SagaBuilder::returns).
///
/// ```
/// # use saga_core::{Saga, StepError, memory::MemoryStore, saga_step};
/// #[saga_step(no_compensation)]
/// async fn greet(name: String) -> Result<String, StepError> {
///     Ok(format!("hello {name}"))
/// }
///
/// let saga: Saga<MemoryStore, String> = Saga::named("greeting").input::<String>().step::<greet>().build()?;
/// # Ok::<(), saga_core::saga::SagaError>(())
/// ```
pub struct Saga<S: Store, I, R = ()> {
    definition: Arc<Definition<S>>,
    types: PhantomData<fn(I) -> R>,
}

impl<S: Store, I, R> Saga<S, I, R> {
    pub(super) fn of(definition: Arc<Definition<S>>) -> Self {
        Self { definition, types: PhantomData }
    }

    /// The saga's name.
    pub fn name(&self) -> &str {
        &self.definition.id.name
    }

    /// The saga's version.
    pub fn version(&self) -> u32 {
        self.definition.id.version
    }

    /// The definition as a Mermaid flow chart.
    pub fn to_mermaid(&self) -> String {
        mermaid(&self.definition.id, &self.definition.shape)
    }

    /// The same definition, for what takes sagas whatever they return. Its sagas have their results as before.
    #[must_use]
    pub fn without_result_type(&self) -> Saga<S, I> {
        Saga::of(Arc::clone(&self.definition))
    }

    pub(crate) fn definition(&self) -> &Arc<Definition<S>> {
        &self.definition
    }
}

impl<S: Store, I, R> Clone for Saga<S, I, R> {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.definition))
    }
}

impl<S: Store, I, R> fmt::Debug for Saga<S, I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Saga").field(&self.definition).finish()
    }
}
