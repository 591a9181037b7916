//! What a step is: the traits that `#[saga_step]` and `#[saga_compensation]` implement, what a step
//! may take as parameters, what it may return, and the errors that decide what becomes of its saga.
//!
//! | a parameter | gives |
//! |---|---|
//! | `&mut C` | the step's transaction, on a store whose connection is `C` |
//! | [`&StepContext`](StepContext) | the key, the attempt, the time left, cancellation, the fence, `emit`, `report` |
//! | [`State<T>`](State) | a value of the application, given to the runtime when it is built |
//! | [`Output<step>`](Output) | what an earlier step of the saga returned |
//! | [`Batch<T>`](Batch) | the inputs of many sagas, for one call |
//! | any other type | the step's input |

mod args;
mod batch;
mod call_keys;
mod classify;
mod codec;
mod compensation;
mod context;
mod contract;
mod each;
mod error;
mod event;
mod failure;
mod handler;
mod if_taken;
mod options;
mod output;
mod params;
mod progress;
mod received;
mod rejection;
mod resolution;
mod retry;
mod signal;
mod state;
#[expect(clippy::module_inception, reason = "the trait `Step` is the main item of this folder")]
mod step;
mod text;
mod undo;

pub use self::{
    args::{Args, Outputs, States},
    batch::{Batch, BatchResults, Contexts, IntoItemResult},
    classify::StepResultExt,
    codec::{Codec, CodecError, Payload, codec, no_codec},
    compensation::{Compensate, CompensateExternalFn, CompensateInTransactionFn, Compensation, CompensationHandler},
    context::{FailedStep, StepContext},
    contract::{
        Compensated, Contract, ContractInput, ContractOutput, Hosted, Uncompensated, compensated, implemented_input,
        implemented_name, implemented_output, uncompensated,
    },
    each::Each,
    error::{StepError, StepErrorKind},
    event::{Emitted, Event},
    failure::{IntoStepError, StepReturn, finish, finish_alias},
    handler::{
        BatchFn, BoxFuture, ExternalFn, Handler, Run, TransactionFn, Undo, UndoExternalFn, UndoTransactionFn, undo,
    },
    if_taken::IfTaken,
    options::StepOptions,
    output::Output,
    params::{FromStep, NeededOutput, NeededState, Needs, Params, read_compensation, read_resolution, read_step},
    received::{Signal, Signaled},
    rejection::Rejection,
    resolution::{Resolution, ResolveFn, ResolveInput, ResolveOf, ResolveOutput, Resolved, ResolvedValue, resolved_by},
    retry::RetryPolicy,
    signal::CancelSignal,
    state::State,
    step::{InputOf, Step},
    undo::{Given, Ignored, UndoInput, UndoOf, UndoOutput, UndoValue, undone_by},
};
pub(crate) use self::{
    call_keys::ExternalKey,
    context::{ContextParts, OptionalOutputs, TimeLeft},
    each::{items_of, list_of},
    progress::{ReportLimit, Reporting, Reports},
    text::limited,
};
