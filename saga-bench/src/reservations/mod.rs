//! Reservations on PostgreSQL, beside one transaction for each operation and beside pgbench.

mod contender;
mod duplicates;
mod run;
mod work;

pub(crate) use run::run;
