//! Runs steps that are sagas of their own.

mod child_result;
mod sub_sagas;

pub(crate) use self::sub_sagas::{SubSagas, given_up};
