//! Steps with their types taken off: bytes in, bytes out.

use std::sync::Arc;

use crate::env::BoxFuture;
use crate::machine::Effect;
use crate::step::{
    Args, Batch, BatchFn, Contexts, ExternalFn, Handler, Resolved, Step, StepError, StepOptions, TransactionFn, Undo,
};
use crate::store::Store;

/// Why a step gave no bytes.
pub(crate) enum Unfinished {
    /// The function, or what stands before it, failed.
    Failed(StepError),
    /// The function returned an output that cannot be encoded.
    Unstorable(String),
    /// The other side, which was asked, says that it did not happen so far.
    NotDone,
}

/// The inputs of one call of a batch step.
pub(crate) struct BatchInputs<'a> {
    pub(crate) encoded: Vec<&'a [u8]>,
    pub(crate) contexts: Arc<Contexts>,
}

/// Why a batch step gave no answers, so that the call must be taken back.
pub(crate) enum BatchUnfinished {
    /// The function, or what stands before it, failed.
    Failed(StepError),
    /// These inputs do not decode, or what was answered for them cannot be encoded.
    Apart(Vec<(usize, Unfinished)>),
}

/// The encoded answer for each input.
pub(crate) type BatchAnswered = Result<Vec<Result<Vec<u8>, StepError>>, BatchUnfinished>;

type Encoded = Result<Vec<u8>, Unfinished>;
pub(in crate::saga) type TransactionRun<C> =
    dyn for<'a> Fn(&'a mut C, Args<'a>, &'a [u8]) -> BoxFuture<'a, Encoded> + Send + Sync;
pub(in crate::saga) type BatchRun<C> =
    dyn for<'a> Fn(&'a mut C, Args<'a>, BatchInputs<'a>) -> BoxFuture<'a, BatchAnswered> + Send + Sync;
pub(in crate::saga) type ExternalRun = dyn for<'a> Fn(Args<'a>, &'a [u8]) -> BoxFuture<'a, Encoded> + Send + Sync;
type Undone = Result<(), StepError>;
type TransactionUndo<C> =
    dyn for<'a> Fn(&'a mut C, Args<'a>, &'a [u8], Option<&'a [u8]>) -> BoxFuture<'a, Undone> + Send + Sync;
type ExternalUndo = dyn for<'a> Fn(Args<'a>, &'a [u8], Option<&'a [u8]>) -> BoxFuture<'a, Undone> + Send + Sync;

/// How a step is undone.
pub(crate) enum StepUndo<S: Store> {
    Transaction(Box<TransactionUndo<S::Conn>>),
    External(Box<ExternalUndo>),
    Remote,
    /// What its saga did is undone.
    Child,
}

/// How the other side is asked what became of a step.
#[derive(Clone)]
pub(crate) struct StepResolve {
    pub(crate) ask: Arc<ExternalRun>,
    pub(crate) options: StepOptions,
}

/// The function of the step `T`, which runs in a transaction.
pub(in crate::saga) fn transaction_run<S: Store, T: Step>(
    function: TransactionFn<S, T>,
) -> Box<TransactionRun<S::Conn>> {
    Box::new(move |conn, args, input| {
        Box::pin(async move { encode::<T>(&function(conn, args, input_of::<T>(input)?).await?) })
    })
}

/// The function of the batch step `T`.
pub(in crate::saga) fn batch_run<S: Store, T: Step>(function: BatchFn<S, T>) -> Box<BatchRun<S::Conn>> {
    Box::new(move |conn, args, inputs| {
        Box::pin(async move {
            let batch = Batch::new(decode_all::<T>(&inputs.encoded)?, Arc::clone(&inputs.contexts));
            let answers = function(conn, args, batch).await?;
            let answers = answers.of_batch(&inputs.contexts).ok_or_else(of_another_batch)?;
            encode_all::<T>(answers)
        })
    })
}

/// The function of the step `T`, which runs outside any transaction.
pub(in crate::saga) fn external_run<T: Step>(function: ExternalFn<T>) -> Box<ExternalRun> {
    Box::new(move |args, input| Box::pin(async move { encode::<T>(&function(args, input_of::<T>(input)?).await?) }))
}

impl<S: Store> StepUndo<S> {
    /// Where the effect of undoing a step lies, whose own lies there.
    pub(crate) fn effect(&self, of_step: Effect) -> Effect {
        match self {
            Self::Transaction(_) => Effect::Transactional,
            Self::External(_) => Effect::External,
            Self::Remote | Self::Child => of_step,
        }
    }

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

impl StepResolve {
    pub(crate) fn of<T: Step>() -> Option<Self> {
        let resolve = T::RESOLVE?;
        let ask: Arc<ExternalRun> = Arc::new(move |args, input| {
            Box::pin(async move {
                match resolve.function()(args, input_of::<T>(input)?).await? {
                    Resolved::Done(output) => encode::<T>(&output),
                    Resolved::NotDone => Err(Unfinished::NotDone),
                    Resolved::Pending => Err(StepError::retry("the other side does not know yet").into()),
                }
            })
        });
        Some(Self { ask, options: resolve.options() })
    }
}

impl From<StepError> for Unfinished {
    fn from(error: StepError) -> Self {
        Self::Failed(error)
    }
}

impl From<StepError> for BatchUnfinished {
    fn from(error: StepError) -> Self {
        Self::Failed(error)
    }
}

fn decode_all<T: Step>(encoded: &[&[u8]]) -> Result<Vec<T::Input>, BatchUnfinished> {
    all_or_apart(encoded.iter().map(|bytes| input_of::<T>(bytes).map_err(Unfinished::Failed)))
}

fn encode_all<T: Step>(answers: Vec<Result<T::Output, StepError>>) -> BatchAnswered {
    all_or_apart(answers.into_iter().map(|answer| match answer {
        Ok(output) => encode::<T>(&output).map(Ok),
        Err(error) => Ok(Err(error)),
    }))
}

/// What cannot be read or written concerns its own saga only, so it is named.
fn all_or_apart<V>(each: impl ExactSizeIterator<Item = Result<V, Unfinished>>) -> Result<Vec<V>, BatchUnfinished> {
    let (mut all, mut apart) = (Vec::with_capacity(each.len()), Vec::new());
    for (index, one) in each.enumerate() {
        match one {
            Ok(value) => all.push(value),
            Err(unfinished) => apart.push((index, unfinished)),
        }
    }
    if apart.is_empty() { Ok(all) } else { Err(BatchUnfinished::Apart(apart)) }
}

fn of_another_batch() -> StepError {
    StepError::unreadable("it returned the answers of another batch; end it with `Ok(batch.map_each(|input| ..))`")
}

fn encode<T: Step>(output: &T::Output) -> Encoded {
    T::OUTPUT.encode(output).map_err(|error| Unfinished::Unstorable(format!("its output cannot be stored: {error}")))
}

fn input_of<T: Step>(bytes: &[u8]) -> Result<T::Input, StepError> {
    T::INPUT.decode(bytes).map_err(|error| StepError::unreadable(format!("its stored input does not decode: {error}")))
}

/// What a step took and, where that is known, what it returned.
fn arguments<T: Step>(input: &[u8], output: Option<&[u8]>) -> Result<(T::Input, Option<T::Output>), StepError> {
    let input = input_of::<T>(input)?;
    let output = output.map(|bytes| T::OUTPUT.decode(bytes)).transpose();
    let output =
        output.map_err(|error| StepError::unreadable(format!("its stored output does not decode: {error}")))?;
    Ok((input, output))
}
