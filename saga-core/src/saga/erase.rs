//! Steps with their types taken off: bytes in, bytes out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::Earlier;
use crate::env::BoxFuture;
use crate::machine::Effect;
use crate::step::{Args, Handler, Outputs, Payload, Run, Step, StepError, Undo, codec};
use crate::store::Store;

/// Why a step gave no bytes.
pub(crate) enum Unfinished {
    /// The function, or what stands before it, failed.
    Failed(StepError),
    /// The function returned an output that cannot be encoded.
    Unstorable(String),
}

type Encoded = Result<Vec<u8>, Unfinished>;
type TransactionRun<C> = dyn for<'a> Fn(&'a mut C, Args<'a>, &'a [u8]) -> BoxFuture<'a, Encoded> + Send + Sync;
type ExternalRun = dyn for<'a> Fn(Args<'a>, &'a [u8]) -> BoxFuture<'a, Encoded> + Send + Sync;
type Undone = Result<(), StepError>;
type TransactionUndo<C> =
    dyn for<'a> Fn(&'a mut C, Args<'a>, &'a [u8], Option<&'a [u8]>) -> BoxFuture<'a, Undone> + Send + Sync;
type ExternalUndo = dyn for<'a> Fn(Args<'a>, &'a [u8], Option<&'a [u8]>) -> BoxFuture<'a, Undone> + Send + Sync;
type Map = dyn Fn(&[u8], &Outputs) -> Result<Vec<u8>, String> + Send + Sync;

/// How a step is done.
pub(crate) enum StepRun<S: Store> {
    Transaction(Box<TransactionRun<S::Conn>>),
    External(Box<ExternalRun>),
    Remote { service: &'static str },
}

/// How a step is undone.
pub(crate) enum StepUndo<S: Store> {
    Transaction(Box<TransactionUndo<S::Conn>>),
    External(Box<ExternalUndo>),
    Remote,
}

/// How a step's input is made, where it is not the saga's.
#[derive(Clone)]
pub(crate) struct Mapping(Arc<Map>);

impl<S: Store> StepRun<S> {
    pub(crate) fn of<T: Handler<S>>() -> Self {
        match T::handler() {
            Run::Transaction(function) => Self::Transaction(Box::new(move |conn, args, input| {
                Box::pin(async move { encode::<T>(&function(conn, args, input_of::<T>(input)?).await?) })
            })),
            Run::External(function) => Self::External(Box::new(move |args, input| {
                Box::pin(async move { encode::<T>(&function(args, input_of::<T>(input)?).await?) })
            })),
            Run::Remote { service } => Self::Remote { service },
        }
    }

    /// Where the effect of the step lies.
    pub(crate) fn effect(&self) -> Effect {
        match self {
            Self::Transaction(_) => Effect::Transactional,
            Self::External(_) => Effect::External,
            Self::Remote { service } => Effect::Remote { service },
        }
    }
}

impl<S: Store> StepUndo<S> {
    pub(crate) fn of<T: Handler<S>>() -> Option<Self> {
        match T::undo() {
            Undo::Nothing => None,
            Undo::Remote => Some(Self::Remote),
            Undo::Transaction(function) => Some(Self::Transaction(Box::new(move |conn, args, input, output| {
                Box::pin(async move {
                    let (input, output) = arguments::<T>(input, output)?;
                    function(conn, args, input, output).await
                })
            }))),
            Undo::External(function) => Some(Self::External(Box::new(move |args, input, output| {
                Box::pin(async move {
                    let (input, output) = arguments::<T>(input, output)?;
                    function(args, input, output).await
                })
            }))),
        }
    }
}

impl Mapping {
    pub(crate) fn of_input<I: Payload, T: Step>(map: impl Fn(&I) -> T::Input + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |input, _| {
            let input = codec::<I>().decode(input).map_err(|error| error.to_string())?;
            give::<T>(&map(&input))
        }))
    }

    pub(crate) fn of_outputs<I: Payload, T: Step, E: Earlier>(
        map: impl Fn(&I, E::Outputs) -> T::Input + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |input, outputs| {
            let input = codec::<I>().decode(input).map_err(|error| error.to_string())?;
            let outputs = E::read(outputs).map_err(|error| error.to_string())?;
            give::<T>(&map(&input, outputs))
        }))
    }

    /// The step's encoded input.
    ///
    /// The mapping is the user's code, and so is what reads and writes its values: a panic concerns its own saga only.
    pub(crate) fn apply(&self, input: &[u8], outputs: &Outputs) -> Result<Vec<u8>, String> {
        let applied = catch_unwind(AssertUnwindSafe(|| (self.0)(input, outputs)));
        applied.unwrap_or_else(|panic| Err(format!("the mapping of its input panicked: {}", panic_message(&*panic))))
    }
}

fn give<T: Step>(input: &T::Input) -> Result<Vec<u8>, String> {
    T::INPUT.encode(input).map_err(|error| error.to_string())
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

impl From<StepError> for Unfinished {
    fn from(error: StepError) -> Self {
        Self::Failed(error)
    }
}

fn encode<T: Step>(output: &T::Output) -> Encoded {
    T::OUTPUT.encode(output).map_err(|error| Unfinished::Unstorable(format!("its output cannot be stored: {error}")))
}

fn input_of<T: Step>(bytes: &[u8]) -> Result<T::Input, StepError> {
    T::INPUT.decode(bytes).map_err(|error| StepError::stuck(format!("its stored input does not decode: {error}")))
}

/// What a step took and, where that is known, what it returned.
fn arguments<T: Step>(input: &[u8], output: Option<&[u8]>) -> Result<(T::Input, Option<T::Output>), StepError> {
    let input = input_of::<T>(input)?;
    let output = output.map(|bytes| T::OUTPUT.decode(bytes)).transpose();
    let output = output.map_err(|error| StepError::stuck(format!("its stored output does not decode: {error}")))?;
    Ok((input, output))
}
