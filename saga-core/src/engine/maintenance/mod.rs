//! Maintenance: purges ended sagas, and what else is kept for a time only, in one process at a time.

mod ask_for_closed;
mod forget;
#[expect(clippy::module_inception, reason = "the type `Maintenance` is the main item of this folder")]
mod maintenance;
mod pace;
mod purge;
mod refused_sagas;

pub(crate) use self::maintenance::Maintenance;
