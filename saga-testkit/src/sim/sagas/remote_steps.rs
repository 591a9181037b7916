//! The steps of the simulation, hosted by other services: what the sagas know of them.

use std::marker::PhantomData;

use saga_core::step::{Codec, Contract, Handler, Hosted, Run, Step, StepOptions, Undo, codec};

use super::naming::SERVICES;
use super::payload::{SimInput, SimOutput};
use super::steps::{Announce, Charge, Confirm, Note, Planned, Reserve, Ship};
use crate::checker::{Kind, UndoPlan};
use crate::sim::world::SimStore;

/// A step that a service hosts.
pub(crate) trait Located: Planned {
    /// The number of the service.
    const AT: u8;
}

/// The step `T`, done by the service that hosts it.
#[derive(Debug)]
pub(crate) struct RemoteStep<T>(PhantomData<fn() -> T>);

impl<T: Located> Step for RemoteStep<T> {
    type Input = SimInput;
    type Output = SimOutput;
    const NAME: &'static str = T::NAME;
    const OPTIONS: StepOptions = T::OPTIONS;
    const INPUT: Codec<SimInput> = codec::<SimInput>();
    const OUTPUT: Codec<SimOutput> = codec::<SimOutput>();
}

impl<T: Located> Contract for RemoteStep<T> {
    const SERVICE: &'static str = SERVICES[T::AT as usize - 1];
    const COMPENSATED: bool = T::UNDO_PLAN.is_some();
}

impl<T: Located> Handler<SimStore> for RemoteStep<T> {
    fn handler() -> Run<SimStore, Self> {
        Run::Remote { service: Self::SERVICE }
    }

    fn undo() -> Undo<SimStore, Self> {
        if Self::COMPENSATED { Undo::Remote } else { Undo::Nothing }
    }
}

impl<T: Located> Planned for RemoteStep<T> {
    const KIND: Kind = T::KIND;
    const UNDO_PLAN: Option<UndoPlan> = T::UNDO_PLAN;
    const EMITS: u8 = T::EMITS;
    const HOST: Option<u8> = Some(T::AT);
}

macro_rules! located {
    ($($step:ident at $at:literal;)*) => {$(
        impl<const N: usize> Hosted for $step<N> {
            const SERVICE: &'static str = RemoteStep::<Self>::SERVICE;
        }

        impl<const N: usize> Located for $step<N> {
            const AT: u8 = $at;
        }
    )*};
}

located! {
    Reserve at 1;
    Charge at 1;
    Ship at 2;
    Note at 2;
    Confirm at 2;
    Announce at 2;
}
