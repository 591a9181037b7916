//! The sagas of the simulation, and what their step functions do.

mod batch_steps;
mod calls;
mod definition;
mod definitions;
mod lock_sagas;
mod locks;
mod mutants;
mod naming;
mod payload;
mod planner;
mod reconcile;
mod remote_sagas;
mod remote_steps;
mod steps;
mod timer_sagas;

pub(crate) use self::definition::SimDefinition;
pub(crate) use self::definitions::{BATCH_DEFINITIONS, definitions};
pub(crate) use self::lock_sagas::lock_definitions;
pub(crate) use self::locks::LOCKS;
pub(crate) use self::mutants::mutated;
pub(crate) use self::naming::{CHOICES, HOME, SERVICES, SUB, hosted_key, outermost, place_of, tenant_of};
pub(crate) use self::payload::{SimEvent, SimInput, SimOutput, SimSignal};
pub(crate) use self::planner::{ORIGIN_MICROS, begin_asking, named};
pub(crate) use self::remote_sagas::{SimService, external_definitions, remote_definitions, services};
pub(crate) use self::steps::{Charge, Haul, Pay, Ship};
