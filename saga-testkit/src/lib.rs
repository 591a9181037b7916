#![doc = include_str!("../README.md")]

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
mod time;
mod transport;

pub use check::{Check, Failed, Need, Outcome};
pub use fixture::Bench as StoreBench;
pub use harness::{Fault, Provokes, StartInHarness, StoreHarness, Timing, TransportHarness, Unavailable};
pub use memory::MemoryHarness;
pub use registry::{start_in_checks, store_checks, transport_checks};
pub use report::{Report, clauses_in};
pub use run::{block_on, start_in_suite, store_suite, transport_suite};
pub use time::{TimeStatistics, VirtualTime};
pub use transport::{Bench as TransportBench, messages};

saga_core::precompile_runtime!(saga_core::memory::MemoryStore);

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
