//! What the attributes of `saga-macros` accept and refuse, and the examples of their documentation.

#[cfg(doctest)]
#[doc = include_str!("../../saga-macros/docs/saga_step.md")]
mod saga_step {}

#[cfg(doctest)]
#[doc = include_str!("../../saga-macros/docs/saga_compensation.md")]
mod saga_compensation {}

#[cfg(doctest)]
#[doc = include_str!("../../saga-macros/docs/saga_resolution.md")]
mod saga_resolution {}
