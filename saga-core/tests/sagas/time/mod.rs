//! Deadlines, sleeps and limits for all attempts of a step, on a clock that the test owns.

mod deadlines;
mod outside;
mod sleeps;
