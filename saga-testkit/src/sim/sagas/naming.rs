//! How the simulated services, sagas and steps are named.

use saga_core::Tenant;

use crate::checker::StepPlan;

/// The services that host steps, by their numbers less one: 0 is the one in which the sagas run.
pub(crate) const SERVICES: [&str; 2] = ["payments", "shipping"];
/// The service in which the sagas run.
pub(crate) const HOME: &str = "orders";
/// The names of the choices, by their numbers.
pub(crate) const CHOICES: [&str; 2] = ["choice-0", "choice-1"];
/// The name of the step that is a saga of its own.
pub(crate) const SUB: &str = "sub";

/// The tenant of that name.
pub(crate) fn tenant_of(name: &str) -> Tenant {
    // Every tenant of a scenario has a legal name.
    Tenant::from_stored(name).unwrap_or_default()
}

/// The key under which another service hosts that step of that saga.
pub(crate) fn hosted_key(saga: &str, step: &StepPlan) -> String {
    if step.is_sub { format!("{saga}>{SUB}>{}", step.name) } else { format!("{saga}>{}", step.name) }
}

/// The key of the saga that a saga is a step of, or its own.
pub(crate) fn outermost(key: &str) -> &str {
    key.split_once('>').map_or(key, |(outer, _)| outer)
}

/// The place of a step in its saga: it stands behind its name. The items of a list have the places from there on.
pub(crate) fn place_of(step: &str) -> Option<u8> {
    let (step, item) = step.split_once('#').unwrap_or((step, "1"));
    let item: u8 = item.parse().ok()?;
    Some(step.rsplit_once('-')?.1.parse::<u8>().ok()? + item.checked_sub(1)?)
}
