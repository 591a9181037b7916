use std::any::TypeId;

use crate::step::{Args, StepError};

pub(in crate::step) mod sealed {
    pub trait Sealed {}
}

/// A parameter that the runtime reads for a step: [`State`](crate::step::State), the step's own lock
/// ([`Locked`](crate::step::Locked)), or what an earlier step returned ([`FromOutputs`](crate::step::FromOutputs)).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a parameter that the runtime can give to a step",
    label = "not a parameter of a step",
    note = "besides the connection, `&StepContext` and the input, a step takes `State<T>`, `Output<step>` and `Locked`"
)]
pub trait FromStep: sealed::Sealed + Sized {
    /// Adds what this parameter needs.
    #[doc(hidden)]
    fn needs(needs: &mut Needs);

    /// Reads the parameter.
    ///
    /// # Errors
    ///
    /// What it needs is not there or cannot be read; the error is of the kind
    /// [`Unreadable`](crate::step::StepErrorKind::Unreadable), never a rejection.
    #[doc(hidden)]
    fn from_step(args: Args<'_>) -> Result<Self, StepError>;
}

/// What the parameters of a step need, so that a saga can be checked when it is built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The application's values, one for each `State<T>`.
    pub states: Vec<NeededState>,
    /// The earlier steps, one for each parameter that reads what a step returned.
    pub outputs: Vec<NeededOutput>,
    /// Whether a parameter is the lock of the step.
    pub lock: bool,
}

/// A `State<T>` parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeededState {
    /// Of `T`.
    pub type_id: TypeId,
    /// The name of `T`, for messages.
    pub type_name: &'static str,
}

/// A parameter that reads what an earlier step returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeededOutput {
    /// The name of the step.
    pub step: &'static str,
    /// Of the step's type: two steps of one name are not the same step.
    pub type_id: TypeId,
    /// Whether it is taken as the list of a `for_each` step, by [`Outputs`](crate::step::Outputs).
    pub is_list: bool,
    /// Whether it is taken as an `Option`, since its step stands in an arm of a choice.
    pub is_optional: bool,
    /// Whether the step takes a semantic lock. A command to another service carries it.
    pub is_lock: bool,
}

#[cfg(all(test, feature = "macros"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::saga_step;
    use crate::step::{FromOutputs, Output, State, States, StepContext, StepErrorKind, StepOutputs};

    #[saga_step]
    async fn nothing(_order: u64) -> Result<(), StepError> {
        Ok(())
    }

    #[saga_step(name = "maybe-a-price")]
    async fn price(_order: u64) -> Result<Option<u32>, StepError> {
        Ok(None)
    }

    fn read<P: FromStep>(states: &States, outputs: &[(&'static str, &str)]) -> Result<P, StepError> {
        let stored = outputs.iter().map(|(step, output)| (*step, Arc::from(output.as_bytes())));
        P::from_step(Args { ctx: &StepContext::for_test("order-7:step"), states, outputs: &stored.collect() })
    }

    #[test]
    fn outputs_are_read_under_the_name_of_their_step() {
        let outputs = [("nothing", "null"), ("maybe-a-price", "null")];
        let Output(()): Output<nothing> = read(&States::new(), &outputs).unwrap();
        let Output(none): Output<price> = read(&States::new(), &outputs).unwrap();
        assert_eq!(none, None);
        let Output(some): Output<price> = read(&States::new(), &[("maybe-a-price", "7")]).unwrap();
        assert_eq!(some, Some(7));
    }

    #[test]
    fn each_state_is_found_by_its_type() {
        let mut states = States::new();
        assert_eq!(states.insert(7_u32), None);
        assert_eq!(states.insert("text"), None);
        let State(text): State<&str> = read(&states, &[]).unwrap();
        let State(number): State<u32> = read(&states, &[]).unwrap();
        assert_eq!((text, number), ("text", 7));
        assert_eq!(states.insert(8_u32), Some(7));
    }

    #[test]
    fn what_cannot_be_read_is_stuck_and_never_a_rejection() {
        let check = |error: StepError, text: &str| {
            assert_eq!(error.kind(), StepErrorKind::Unreadable);
            assert!(error.to_string().contains(text), "{error}");
        };
        let none = States::new();
        check(read::<Output<price>>(&none, &[]).unwrap_err(), "`maybe-a-price` has no recorded output");
        let other = [("maybe-a-price", "\"dear\"")];
        check(read::<Output<price>>(&none, &other).unwrap_err(), "the recorded output of the step `maybe-a-price`");
        check(read::<State<u32>>(&none, &[]).unwrap_err(), "without a state of type `u32`");
    }

    #[test]
    fn needs_name_the_states_and_the_steps() {
        let mut needs = Needs::default();
        State::<u32>::needs(&mut needs);
        Output::<price>::needs(&mut needs);
        State::<String>::needs(&mut needs);
        assert_eq!(
            needs.states.iter().map(|state| state.type_name).collect::<Vec<_>>(),
            ["u32", "alloc::string::String"]
        );
        assert_eq!(needs.outputs, [Output::<price>::needed()]);
    }

    #[test]
    fn a_later_output_of_a_step_replaces_the_earlier_one() {
        let mut outputs = StepOutputs::new();
        outputs.insert("price", Arc::from(&b"1"[..]));
        outputs.insert("price", Arc::from(&b"2"[..]));
        assert_eq!(outputs.get("price").map(|output| &output[..]), Some(&b"2"[..]));
        assert_eq!(format!("{outputs:?}"), "[\"price\"]");
    }
}
