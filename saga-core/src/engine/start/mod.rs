//! Starts sagas.

mod inline;
mod start_many;
mod starter;

pub(crate) use self::starter::{StartedSaga, Starter, begins_in, check_same, log_start};
