//! Single orders of events that were once decided wrongly.

mod branches;
mod cancelled;
mod events;
mod late;
