//! Crash exploration on the memory store: a sound saga passes, and each of several broken ones is found.

mod flawed;
mod shop;
mod sound;
