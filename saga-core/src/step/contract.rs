use std::marker::PhantomData;

use super::{Codec, Payload, Step, codec};

/// A step that another service hosts, as both sides know it: its name, what it takes and what it returns.
///
/// `#[saga_step(service = "..")]` on a function without a body implements it. A saga names the step as any other; the
/// function with the body is the host's, and says `#[saga_step(implements = ..)]`.
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
    /// The service that hosts the step, as the contract names it.
    const SERVICE: &'static str;

    /// That the step is undone exactly if the contract says so.
    #[doc(hidden)]
    const UNDONE: () = ();
}

/// A [`Contract`] that the attribute declared.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no contract of a step",
    label = "not declared for another service",
    note = "a contract is a function without a body: `#[saga_step(service = \"payments\")] pub async fn charge_card(charge: Charge) -> Result<Payment, StepError>;`"
)]
pub trait DeclaredContract: Contract {
    /// The contract itself, its input, its output, and [`HasCompensation`] or [`NoCompensation`].
    type Types;
}

/// The contract says `compensated`.
#[doc(hidden)]
#[derive(Debug)]
pub enum HasCompensation {}

/// The contract does not say `compensated`.
#[doc(hidden)]
#[derive(Debug)]
pub enum NoCompensation {}

/// The contract `C` says `compensated`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{C}` is no contract of a step with a compensation",
    label = "no saga would call it",
    note = "leave `compensate` out here, or add `compensated` to the contract: `#[saga_step(service = \"..\", compensated)]`"
)]
pub trait Compensated<C> {}

impl<C> Compensated<C> for HasCompensation {}

/// The contract `C` does not say `compensated`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{C}` is no contract of a step without a compensation",
    label = "needs `compensate = ..` beside it",
    note = "a contract with `compensated` says that its host can undo the step: name the function that does, `#[saga_step(implements = .., compensate = refund_card)]`"
)]
pub trait Uncompensated<C> {}

impl<C> Uncompensated<C> for NoCompensation {}

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

/// What a contract declares, with its [`DeclaredContract::Types`].
///
/// The bound that it is a contract stands only at [`declared`], so that something else is one error.
#[doc(hidden)]
#[derive(Debug)]
pub struct Declared<T> {
    name: &'static str,
    service: &'static str,
    types: PhantomData<fn() -> T>,
}

/// What the contract `C` declares.
#[doc(hidden)]
pub const fn declared<C: DeclaredContract>() -> Declared<C::Types> {
    Declared { name: C::NAME, service: C::SERVICE, types: PhantomData }
}

impl<C, I, O, U> Declared<(C, I, O, U)> {
    /// The name of the step.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The service that hosts the step.
    pub const fn service(&self) -> &'static str {
        self.service
    }

    /// The codec of the input `T` of a step that implements the contract.
    pub const fn input<T: ContractInput<I> + Payload>(&self) -> Codec<T> {
        codec()
    }

    /// The codec of the output `T` of a step that implements the contract.
    pub const fn output<T: ContractOutput<O> + Payload>(&self) -> Codec<T> {
        codec()
    }

    /// Demands that the contract says `compensated`.
    pub const fn compensated(&self)
    where
        U: Compensated<C>,
    {
    }

    /// Demands that the contract does not say `compensated`.
    pub const fn uncompensated(&self)
    where
        U: Uncompensated<C>,
    {
    }
}
