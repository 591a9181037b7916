//! The harness of the memory backends, and tests of what only the memory store can show.

mod harness;
#[cfg(test)]
mod tests;

pub(crate) use self::harness::LostAnswer;
pub use self::harness::MemoryHarness;
