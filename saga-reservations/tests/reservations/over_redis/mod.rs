//! A real Redis that is emptied, restarted and cut off at each point of the work, over SQLite.

mod clock;
mod crashes;
mod flushes;
mod loads;
mod replicas;
mod servers;
mod shop;
mod tidying;
mod together;
