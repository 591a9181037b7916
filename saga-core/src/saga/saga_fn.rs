//! The closures of a definition, which make a value of the saga's input and of what earlier steps returned.

use crate::step::{FromOutputs, NeededOutput, OutputError, StepOutputs};

/// A closure of a saga's definition. It makes a `V` from the saga's input `I` and up to six parameters that read outputs of
/// earlier steps ([`FromOutputs`]).
///
/// Write out the types of its parameters, as in a step function: they name the steps to read.
///
/// ```
/// # use saga_core::{Output, Saga, StepError, memory::MemoryStore, saga_step};
/// # #[saga_step(no_compensation)]
/// # async fn charge_card(order: u32) -> Result<String, StepError> { Ok(format!("payment of order {order}")) }
/// # #[saga_step(no_compensation)]
/// # async fn print_receipt(_text: String) -> Result<(), StepError> { Ok(()) }
/// let saga: Saga<MemoryStore, u32> = Saga::named("order")
///     .input::<u32>()
///     .step::<charge_card>()
///     .step_from::<print_receipt, _>(|order: &u32, Output(payment): Output<charge_card>| format!("{order}: {payment}"))
///     .build()?;
/// # Ok::<(), saga_core::saga::SagaError>(())
/// ```
///
/// `M` only distinguishes closures with different parameters, and is inferred.
#[diagnostic::on_unimplemented(
    message = "this closure does not make `{V}` of the saga's input `{I}`",
    label = "not a closure from `&{I}` to `{V}`",
    note = "write the types of its parameters: `|input: &{I}, Output(output): Output<earlier_step>| ..`"
)]
pub trait SagaFn<I, V, M>: Send + Sync + 'static {
    #[doc(hidden)]
    fn needed(&self) -> Vec<NeededOutput>;

    #[doc(hidden)]
    fn call(&self, input: &I, outputs: &StepOutputs) -> Result<V, OutputError>;
}

macro_rules! saga_fn_of_parameters {
    ($(($($P:ident)*))*) => {$(
        impl<F, I, V, $($P),*> SagaFn<I, V, ($($P,)*)> for F
        where
            F: Fn(&I, $($P),*) -> V + Send + Sync + 'static,
            $($P: FromOutputs,)*
        {
            fn needed(&self) -> Vec<NeededOutput> {
                vec![$($P::needed()),*]
            }

            #[allow(unused_variables, reason = "a closure of the input alone reads no output")]
            fn call(&self, input: &I, outputs: &StepOutputs) -> Result<V, OutputError> {
                Ok(self(input, $($P::from_outputs(outputs)?),*))
            }
        }
    )*};
}

saga_fn_of_parameters! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E G) }
