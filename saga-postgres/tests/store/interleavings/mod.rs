//! Two sessions on one server, step by step, at the places where models and simulations do not see the SQL. Each rule is
//! shown to be needed: with it taken out, the same steps end badly.

mod commit_in_doubt;
mod ended_lease;
mod held_keys;
mod hot_rows;
mod one_batch;
mod own_commit;
mod publishers;
mod purging;
mod rejection;
mod relays;
mod two_decisions;
