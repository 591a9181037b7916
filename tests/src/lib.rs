//! Tests of the whole: what the documents show compiles, and what they promise holds.

/// The code in the readme, as a test of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[derive(Debug)]
pub struct Readme;
