//! Whether Redis in front of the database pays for requests with a key and for received messages; and what a lock costs.

mod batch;
mod hybrid;
mod lookups;
mod pairs;
mod run;

pub(crate) use run::run;
