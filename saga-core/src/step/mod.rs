//! What a step is: the traits that `#[saga_step]` and `#[saga_compensation]` implement, what a step
//! may take as parameters, what it may return, and the errors that decide what becomes of its saga.
//!
//! | a parameter | gives |
//! |---|---|
//! | `&mut C` | the step's transaction, on a store whose connection is `C` |
//! | [`&StepContext`](StepContext) | the key, the attempt, the time left, cancellation, the fence, `emit`, `report` |
//! | [`State<T>`](State) | a value of the application, given to the runtime when it is built |
//! | [`Output<step>`](Output) | what an earlier step of the saga returned |
//! | [`Outputs<step>`](Outputs) | what an earlier `for_each` step returned, as a list |
//! | [`Signaled<T>`](Signaled) | the signal that the saga waited for |
//! | [`Locked<L>`](Locked) | the entities of a semantic lock of the saga, with their fencing tokens |
//! | `Option` of one of these four | the same of a step in an arm of a choice, which may not have run |
//! | [`Locked`] | the entities that the step itself locks, with their fencing tokens |
//! | [`Batch<T>`](Batch) | the inputs of many sagas, for one call |
//! | any other type | the step's input |

mod args;
mod batch;
mod call_keys;
mod cancel_signal;
mod classify;
mod codec;
mod compensation;
mod context;
mod contract;
mod error;
mod event;
mod failure;
mod handler;
mod list;
mod lock;
mod locked_entity;
mod optional_output;
mod options;
mod output;
mod params;
mod progress;
mod rejection;
mod reports;
mod resolution;
mod resolve;
mod retry;
mod runs_on;
mod semantic_lock;
mod signal;
mod state;
#[expect(clippy::module_inception, reason = "the trait `Step` is the main item of this folder")]
mod step;
mod step_outputs;
mod text;
mod undo;
mod unnamed;

pub use self::{
    batch::{Batch, BatchResults, IntoItemResult},
    cancel_signal::CancelSignal,
    classify::StepResultExt,
    codec::{CodecError, Payload},
    compensation::Compensation,
    context::{FailedStep, StepContext},
    contract::Contract,
    error::{StepError, StepErrorKind},
    event::Event,
    failure::IntoStepError,
    handler::Handler,
    lock::IntoEntities,
    locked_entity::{LockedEntity, OfStep},
    output::{FromOutputs, Output, Outputs},
    params::FromStep,
    rejection::Rejection,
    resolution::{Resolution, Resolved},
    retry::{OnExhausted, RetryPolicy},
    semantic_lock::{Locked, SemanticLock},
    signal::{Signal, Signaled},
    state::State,
    step::{InputOf, Step},
};
pub use crate::env::BoxFuture;
// What the code that the attributes generate is made of, and what the engine reads it with.
#[doc(hidden)]
pub use self::{
    args::{Args, States},
    batch::Contexts,
    codec::{Codec, codec, no_codec},
    compensation::{Compensate, CompensateExternalFn, CompensateInTransactionFn, CompensationHandler},
    contract::{
        Compensated, ContractInput, ContractOutput, Declared, DeclaredContract, HasCompensation, Hosted,
        NoCompensation, Uncompensated, declared,
    },
    error::IntoTransient,
    event::Emitted,
    failure::{StepReturn, finish, finish_alias},
    handler::{BatchFn, ExternalFn, Run, TransactionFn, Undo, UndoExternalFn, UndoTransactionFn, undo},
    lock::entities_of,
    options::StepOptions,
    output::OutputError,
    params::{NeededOutput, NeededState, Needs},
    resolution::{ResolveFn, ResolvedValue},
    resolve::{ResolveInput, ResolveOutput, resolved_by},
    runs_on::{ConnectionIs, RunsCompensation},
    step::{EntitiesOf, ResolveOf, UndoOf},
    step_outputs::StepOutputs,
    undo::{Given, Ignored, UndoInput, UndoOutput, UndoValue, undone_by},
    unnamed::Unnamed,
};
pub(crate) use self::{
    call_keys::{CallKeys, ExternalKey},
    context::{ContextParts, TimeLeft},
    list::{decode_list, encode_list, items_of, list_of},
    reports::{ReportLimit, Reporting, Reports},
    step_outputs::OptionalOutputs,
    text::limited,
};
