//! Reservations on PostgreSQL, beside one transaction for each operation and beside pgbench.

mod contender;
mod duplicates;
mod over_redis;
mod run;
mod work;

pub(crate) use run::run;
