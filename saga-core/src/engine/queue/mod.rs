//! The state of the scheduler: queues, the poll timer, and the batch limits of the steps in transactions.

mod batch_limits;
mod failure_rate;
mod poll_timer;
mod queue;
mod refused_starts;
mod transaction_cost;

pub(crate) use self::batch_limits::{BatchLimits, SLOW};
pub(crate) use self::failure_rate::Protection;
pub(crate) use self::poll_timer::PollTimer;
pub(crate) use self::queue::Queue;
