//! Tests of the whole: what the documents show compiles, and what they promise holds.
//!
//! The tests share a small shop on every store, an outside world that does as it is told, and stores, transports and
//! clocks that fail on demand.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_debug_implementations, reason = "only tests use this crate")]

mod books;
mod engines;
mod faults;
mod fixture;
#[cfg(doctest)]
mod guide;
#[cfg(feature = "kafka")]
pub mod kafka;
mod mail;
mod sagas;
mod shop;
#[cfg(feature = "sqs")]
pub mod sqs;
mod stopped;
mod wait;
mod warnings;
mod world;

pub use self::books::{Books, Kept};
pub use self::engines::{Engine, engines};
pub use self::faults::{Faults, When};
pub use self::fixture::{Fixture, quick};
pub use self::mail::Mail;
pub use self::sagas::{Booked, Order, book, charge, finish, order_saga, ship};
pub use self::shop::Shop;
pub use self::stopped::StoppableEnvironment;
pub use self::wait::{eventually, within};
pub use self::warnings::Warnings;
pub use self::world::{Act, World};

/// Runs each scenario, a generic async function, on the memory store in virtual time and on a SQLite file.
#[macro_export]
macro_rules! on_both_stores {
    ($($scenario:ident),* $(,)?) => {
        mod memory {
            $(
                #[tokio::test(start_paused = true)]
                async fn $scenario() {
                    $crate::within(super::$scenario::<saga_core::memory::MemoryStore>()).await;
                }
            )*
        }

        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    $crate::within(super::$scenario::<saga_sqlite::SqliteStore>()).await;
                }
            )*
        }
    };
}

/// Runs each scenario on every store: those of [`on_both_stores`], and PostgreSQL.
#[macro_export]
macro_rules! on_every_store {
    ($($scenario:ident),* $(,)?) => {
        $crate::on_both_stores!($($scenario),*);

        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    $crate::within(super::$scenario::<saga_postgres::PostgresStore>()).await;
                }
            )*
        }
    };
}

/// Runs each scenario on every store, on a clock that the scenario moves: without tokio's own virtual time.
#[macro_export]
macro_rules! on_every_clock {
    ($($scenario:ident),* $(,)?) => {
        $crate::on_every_clock! { memory: saga_core::memory::MemoryStore: $($scenario),* }
        $crate::on_every_clock! { sqlite: saga_sqlite::SqliteStore: $($scenario),* }
        $crate::on_every_clock! { postgres: saga_postgres::PostgresStore: $($scenario),* }
    };
    ($store:ident: $type:ty: $($scenario:ident),*) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    $crate::within(super::$scenario::<$type>()).await;
                }
            )*
        }
    };
}

/// Runs each scenario on each pair of a store and a transport.
#[macro_export]
macro_rules! on_every_pair {
    ($($scenario:ident),* $(,)?) => {
        mod memory_and_memory {
            $(
                #[tokio::test(start_paused = true)]
                async fn $scenario() {
                    $crate::within(super::$scenario::<saga_core::memory::MemoryStore>()).await;
                }
            )*
        }

        mod sqlite_and_rabbitmq {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    $crate::within(super::$scenario::<saga_sqlite::SqliteStore>()).await;
                }
            )*
        }

        #[cfg(feature = "kafka")]
        mod sqlite_and_kafka {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    $crate::within($crate::kafka::on(super::$scenario::<saga_sqlite::SqliteStore>())).await;
                }
            )*
        }

        #[cfg(feature = "sqs")]
        mod sqlite_and_sqs {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    $crate::within($crate::sqs::on(super::$scenario::<saga_sqlite::SqliteStore>())).await;
                }
            )*
        }

        mod postgres_and_rabbitmq {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    $crate::within(super::$scenario::<saga_postgres::PostgresStore>()).await;
                }
            )*
        }
    };
}
