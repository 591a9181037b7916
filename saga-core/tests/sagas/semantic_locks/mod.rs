//! Semantic locks of sagas: turns, limits, deadlocks, early ends, and what an operator does.

mod definitions;
mod ends;
mod outages;
mod starts;
mod support;
mod turns;
