//! How the input of a step is made, where it is not the saga's: closures of the definition with their types erased.

use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

use crate::saga::SagaFn;
use crate::step::{OutputError, Payload, Step, StepOutputs, codec, encode_list};
use crate::store::{Entity, Timestamp};
use crate::unwind::caught;

type Map = dyn Fn(&[u8], &StepOutputs) -> Result<Vec<u8>, String> + Send + Sync;

/// Makes the stored input of a step of the saga's stored input and of what earlier steps returned.
#[derive(Clone)]
pub(crate) struct Mapping(Arc<Map>);

impl Mapping {
    /// The input of the step `T`.
    pub(in crate::saga) fn to_input<I: Payload, T: Step, M>(map: impl SagaFn<I, T::Input, M>) -> Self {
        Self(Arc::new(move |input, outputs| give::<T>(&called(&map, input, outputs)?)))
    }

    /// The list of inputs of the step `T`, which runs once for each.
    pub(in crate::saga) fn to_list<I: Payload, T: Step, M>(map: impl SagaFn<I, Vec<T::Input>, M>) -> Self {
        Self(Arc::new(move |input, outputs| {
            encode_list(T::INPUT, &called(&map, input, outputs)?).map_err(|error| error.to_string())
        }))
    }

    /// A value that the engine itself reads.
    pub(in crate::saga) fn to_value<I: Payload, V: Serialize + 'static, M>(map: impl SagaFn<I, V, M>) -> Self {
        Self(Arc::new(move |input, outputs| {
            serde_json::to_vec(&called(&map, input, outputs)?).map_err(|error| error.to_string())
        }))
    }

    /// A moment by the clock of the store.
    pub(in crate::saga) fn to_moment<I: Payload, M>(map: impl SagaFn<I, SystemTime, M>) -> Self {
        Self(Arc::new(move |input, outputs| {
            let moment = Timestamp::from(called(&map, input, outputs)?);
            serde_json::to_vec(&moment).map_err(|error| error.to_string())
        }))
    }

    /// The event itself, as the input of the step `T`.
    pub(crate) fn of_event<E: Payload, T: Step>(input: fn(E) -> T::Input) -> Self {
        Self(Arc::new(move |event, _| {
            let event = codec::<E>().decode(event).map_err(|error| error.to_string())?;
            give::<T>(&input(event))
        }))
    }

    /// What a closure makes of an event, as the input of the step `T`.
    pub(crate) fn from_event<E: Payload, T: Step>(map: impl Fn(&E) -> T::Input + Send + Sync + 'static) -> Self {
        Self::to_input::<E, T, _>(map)
    }

    /// The entities of a semantic lock, sorted and checked.
    pub(in crate::saga) fn to_entities<I: Payload, V: Into<Vec<Entity>> + 'static, M>(
        map: impl SagaFn<I, V, M>,
    ) -> Self {
        Self(Arc::new(move |input, outputs| {
            let entities = Entity::checked(called(&map, input, outputs)?.into())?;
            serde_json::to_vec(&entities).map_err(|error| error.to_string())
        }))
    }

    /// These bytes, whatever the saga is.
    pub(in crate::saga) fn to_bytes(bytes: Vec<u8>) -> Self {
        Self(Arc::new(move |_, _| Ok(bytes.clone())))
    }

    /// The recorded output of the step of that name.
    pub(in crate::saga) fn of_output(step: &'static str) -> Self {
        Self(Arc::new(move |_, outputs| match outputs.get(step) {
            Some(output) => Ok(output.to_vec()),
            None => Err(OutputError::Missing(step).to_string()),
        }))
    }

    /// The step's stored input.
    ///
    /// The closure is the user's code, and so is what reads and writes its values: a panic concerns its own saga only.
    pub(crate) fn apply(&self, input: &[u8], outputs: &StepOutputs) -> Result<Vec<u8>, String> {
        self.make("the mapping of its input", input, outputs)
    }

    /// The same, for what has another name in the text of a panic.
    pub(in crate::saga) fn make(&self, name: &str, input: &[u8], outputs: &StepOutputs) -> Result<Vec<u8>, String> {
        caught(|| (self.0)(input, outputs)).unwrap_or_else(|panic| Err(format!("{name} panicked: {panic}")))
    }
}

/// What a closure of the definition makes of a stored input.
pub(in crate::saga) fn called<I: Payload, V, M>(
    closure: &impl SagaFn<I, V, M>,
    input: &[u8],
    outputs: &StepOutputs,
) -> Result<V, String> {
    let input = codec::<I>().decode(input).map_err(|error| error.to_string())?;
    closure.call(&input, outputs).map_err(|error| error.to_string())
}

fn give<T: Step>(input: &T::Input) -> Result<Vec<u8>, String> {
    T::INPUT.encode(input).map_err(|error| error.to_string())
}
