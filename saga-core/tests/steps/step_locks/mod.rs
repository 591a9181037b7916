//! Locks of steps in memory, in virtual time: who is called when, and what ends a lock.

mod definitions;
mod ends;
mod support;
mod turns;
mod versions;
