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
mod codec;
mod context;
mod contract;
mod errors;
mod event;
mod handlers;
mod options;
mod parameters;
mod retry;
#[expect(clippy::module_inception, reason = "the trait `Step` is the main item of this folder")]
mod step;
mod unnamed;

pub use self::{
    batch::{Batch, BatchResults, IntoItemResult},
    codec::{CodecError, Payload},
    context::context::{FailedStep, StepContext},
    contract::Contract,
    errors::classify::StepResultExt,
    errors::error::{StepError, StepErrorKind},
    errors::failure::IntoStepError,
    errors::rejection::Rejection,
    event::Event,
    handlers::compensation::Compensation,
    handlers::handler::Handler,
    handlers::resolution::{Resolution, Resolved},
    parameters::lock::IntoEntities,
    parameters::locked_entity::{LockedEntity, OfStep},
    parameters::output::{FromOutputs, Output, Outputs},
    parameters::params::FromStep,
    parameters::semantic_lock::{Locked, SemanticLock},
    parameters::signal::{Signal, Signaled},
    parameters::state::State,
    retry::{OnExhausted, RetryPolicy},
    step::{InputOf, Step},
};
pub use crate::env::BoxFuture;
// What the code that the attributes generate is made of, and what the engine reads it with.
#[doc(hidden)]
pub use self::{
    args::{Args, States},
    batch::Contexts,
    codec::{Codec, codec, no_codec},
    context::cancel_signal::CancelSignal,
    contract::{
        Compensated, ContractInput, ContractOutput, Declared, DeclaredContract, HasCompensation, Hosted,
        NoCompensation, Uncompensated, declared,
    },
    errors::error::IntoTransient,
    errors::failure::{StepReturn, finish, finish_alias},
    event::Emitted,
    handlers::compensation::{Compensate, CompensateExternalFn, CompensateInTransactionFn, CompensationHandler},
    handlers::handler::{BatchFn, ExternalFn, Run, TransactionFn, Undo, UndoExternalFn, UndoTransactionFn, undo},
    handlers::resolution::{ResolveFn, ResolvedValue},
    handlers::resolve::{ResolveInput, ResolveOutput, resolved_by},
    handlers::runs_on::{ConnectionIs, RunsCompensation},
    handlers::undo::{Given, Ignored, UndoInput, UndoOutput, UndoValue, undone_by},
    options::StepOptions,
    parameters::lock::entities_of,
    parameters::output::OutputError,
    parameters::params::{NeededOutput, NeededState, Needs},
    parameters::step_outputs::StepOutputs,
    step::{EntitiesOf, ResolveOf, UndoOf},
    unnamed::Unnamed,
};
pub(crate) use self::{
    context::call_keys::{CallKeys, ExternalKey},
    context::context::{ContextParts, TimeLeft},
    context::reports::{ReportLimit, Reporting, Reports},
    errors::text::limited,
    parameters::list::{decode_list, encode_list, items_of, list_of},
    parameters::step_outputs::OptionalOutputs,
};
