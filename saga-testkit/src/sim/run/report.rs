//! The result of one schedule.

use std::time::Duration;

use crate::checker::{Ledger, Violation};
use crate::sim::schedule::Scenario;

/// The result of one schedule.
#[derive(Debug)]
pub struct Report {
    /// The schedule.
    pub scenario: Scenario,
    /// What breaks a guarantee. Empty when all is well.
    pub violations: Vec<Violation>,
    /// What happened.
    pub ledger: Ledger,
    /// How often each fault was hit, in the order of [`Fault::ALL`](crate::sim::Fault::ALL).
    pub hits: Vec<u64>,
    /// A hash of which task was polled when.
    pub trace: u64,
    /// How many polls it took.
    pub polls: u64,
    /// The virtual time that passed.
    pub time: Duration,
}

impl Report {
    /// A hash of everything that happened: equal for two runs of one seed.
    pub fn fingerprint(&self) -> u64 {
        self.trace ^ hash_of(&self.ledger)
    }
}

/// A hash of what is in the ledger (FNV-1a over its debug form).
fn hash_of(ledger: &Ledger) -> u64 {
    struct Hash(u64);
    impl std::fmt::Write for Hash {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    // Writing into a number never fails.
    let _ = std::fmt::Write::write_fmt(&mut hash, format_args!("{ledger:?}"));
    hash.0
}
