use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::Definition;
use super::graph::mermaid;
use crate::store::Store;

/// A saga definition: its steps, with the input `I`, on a store `S`. Cheap to clone.
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
pub struct Saga<S: Store, I> {
    definition: Arc<Definition<S>>,
    input: PhantomData<fn(I)>,
}

impl<S: Store, I> Saga<S, I> {
    pub(super) fn of(definition: Arc<Definition<S>>) -> Self {
        Self { definition, input: PhantomData }
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

    pub(crate) fn definition(&self) -> &Arc<Definition<S>> {
        &self.definition
    }
}

impl<S: Store, I> Clone for Saga<S, I> {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.definition))
    }
}

impl<S: Store, I> fmt::Debug for Saga<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Saga").field(&self.definition).finish()
    }
}
