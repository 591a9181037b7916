//! Retention: ended sagas become tombstones and then are deleted; what may still be acted on is kept (G13).

mod ages;
mod archive;
mod closed;
mod dead_letters;
mod operating;
mod orders;
