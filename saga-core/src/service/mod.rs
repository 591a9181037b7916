//! The steps that a service does for the sagas of others.

mod builder;
mod error;

pub use self::builder::{Service, ServiceBuilder};
pub use self::error::{ServiceError, ServiceProblem};
