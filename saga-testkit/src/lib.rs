//! Conformance suites for stores and transports, and a simulation of the whole runtime.
//!
//! An author writes one file, with `harness = false` in `Cargo.toml`, and runs it with `cargo test`:
//!
//! ```no_run
//! use saga_core::memory::{MemoryConn, MemoryStore};
//! use saga_testkit::{Fault, StoreHarness, store_main};
//!
//! struct Memory;
//!
//! impl StoreHarness for Memory {
//!     type Store = MemoryStore;
//!
//!     async fn fresh(&self) -> MemoryStore {
//!         MemoryStore::new()
//!     }
//!
//!     async fn reopen(&self, store: MemoryStore) -> MemoryStore {
//!         store
//!     }
//!
//!     async fn write_business(&self, conn: &mut MemoryConn, name: &str, value: i64) -> Result<(), Fault> {
//!         Ok(conn.put(name, value.to_be_bytes())?)
//!     }
//!
//!     async fn read_business(&self, store: &MemoryStore, name: &str) -> Option<i64> {
//!         store.read(|table| table.get(name).map(|_| table.counter(name)))
//!     }
//! }
//!
//! store_main!(Memory);
//! ```
//!
//! Every check cites a clause of the contract, and prints it when it fails. A check that the backend or its harness
//! cannot run is reported as skipped. `--report` prints a table of the clauses. A random check prints its seed;
//! `SAGA_TEST_SEED` runs that history again.

mod check;
pub mod checker;
pub mod explore;
#[doc(hidden)]
pub mod faulty;
mod fixture;
pub mod golden;
mod harness;
pub mod hot_path;
#[doc(hidden)]
pub mod intercept;
mod memory;
mod model;
pub mod one_step;
mod registry;
mod report;
mod run;
pub mod sim;
pub mod step_body;
mod store;
mod transport;

pub use check::{Check, Failed, Need, Outcome};
pub use fixture::Bench as StoreBench;
pub use harness::{Fault, Provokes, StartInHarness, StoreHarness, Timing, TransportHarness, Unavailable};
pub use memory::MemoryHarness;
pub use registry::{start_in_checks, store_checks, transport_checks};
pub use report::{Report, clauses_in};
pub use run::{block_on, start_in_suite, store_suite, transport_suite};
pub use transport::Bench as TransportBench;

/// The `main` of a store's suite. It takes a [`StoreHarness`], or, behind `try`, a `Result` of one and [`Unavailable`].
/// With `start_in:` in front it takes a [`StartInHarness`].
#[macro_export]
macro_rules! store_main {
    (start_in: try $harness:expr) => {
        fn main() -> ::std::process::ExitCode { $crate::start_in_suite($harness) }
    };
    (start_in: $harness:expr) => { $crate::store_main!(start_in: try Ok($harness)); };
    (try $harness:expr) => {
        fn main() -> ::std::process::ExitCode { $crate::store_suite($harness) }
    };
    ($harness:expr) => { $crate::store_main!(try Ok($harness)); };
}

/// The `main` of a transport's suite. It takes a [`TransportHarness`], or, behind `try`, a `Result` of one and
/// [`Unavailable`].
#[macro_export]
macro_rules! transport_main {
    (try $harness:expr) => {
        fn main() -> ::std::process::ExitCode { $crate::transport_suite($harness) }
    };
    ($harness:expr) => { $crate::transport_main!(try Ok($harness)); };
}
