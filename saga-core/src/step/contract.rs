use super::{Codec, Payload, Step, codec};

/// A step that another service hosts, as both sides know it: its name, what it takes and what it returns.
///
/// `#[saga_step(service = "..")]` on a function without a body implements it. A saga names the step as any other; the
/// function with the body is the host's, and says `#[saga_step(implements = ..)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no contract of a step",
    label = "not declared for another service",
    note = "a contract is a function without a body: `#[saga_step(service = \"payments\")] pub async fn charge_card(charge: Charge) -> Result<Payment, StepError>;`"
)]
pub trait Contract: Step {
    /// The service that hosts the step: `[a-z0-9-]`, up to 40 bytes.
    const SERVICE: &'static str;
    /// Whether the host can undo the step. How, and whether there is anything to undo, it decides from its record.
    const COMPENSATED: bool;
}

/// A step whose function has a body and implements a [`Contract`], so that a service can host it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no step that a service can host",
    label = "implements no contract",
    note = "host the function with the body, whose attribute names the contract: `#[saga_step(implements = contracts::charge_card)]`"
)]
pub trait Hosted: Step {
    /// What the other services know of the step.
    type Contract: Contract;

    /// That the step is undone exactly if the contract says so.
    #[doc(hidden)]
    const UNDONE: () = ();
}

/// The contract says `compensated`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no contract of a step with a compensation",
    label = "no saga would call it",
    note = "leave `compensate` out here, or add `compensated` to the contract: `#[saga_step(service = \"..\", compensated)]`"
)]
pub trait Compensated: Contract {}

/// The contract does not say `compensated`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no contract of a step without a compensation",
    label = "needs `compensate = ..` beside it",
    note = "a contract with `compensated` says that its host can undo the step: name the function that does, `#[saga_step(implements = .., compensate = refund_card)]`"
)]
pub trait Uncompensated: Contract {}

/// The input of a function fits its contract, whose input is `I`: they are the same type.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the contract's input is `{I}`, but this function takes `{Self}`",
    label = "takes `{Self}`",
    note = "a function that implements a contract takes the contract's input: write `{I}`"
)]
pub trait ContractInput<I> {}

impl<I> ContractInput<I> for I {}

/// The output of a function fits its contract, whose output is `O`: they are the same type.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the contract's output is `{O}`, but this function returns `{Self}`",
    label = "returns `{Self}`",
    note = "a function that implements a contract returns the contract's output: write `{O}`"
)]
pub trait ContractOutput<O> {}

impl<O> ContractOutput<O> for O {}

/// The name of a step that implements a contract.
#[doc(hidden)]
pub const fn implemented_name<T: Hosted>() -> &'static str {
    <T::Contract as Step>::NAME
}

/// The codec of the input `I` of a step that implements a contract.
#[doc(hidden)]
pub const fn implemented_input<T, I>() -> Codec<I>
where
    T: Hosted,
    I: ContractInput<<T::Contract as Step>::Input> + Payload,
{
    codec()
}

/// The codec of the output `O` of a step that implements a contract.
#[doc(hidden)]
pub const fn implemented_output<T, O>() -> Codec<O>
where
    T: Hosted,
    O: ContractOutput<<T::Contract as Step>::Output> + Payload,
{
    codec()
}

/// Demands that the contract says `compensated`.
#[doc(hidden)]
pub const fn compensated<T: Hosted<Contract: Compensated>>() {}

/// Demands that the contract does not say `compensated`.
#[doc(hidden)]
pub const fn uncompensated<T: Hosted<Contract: Uncompensated>>() {}
