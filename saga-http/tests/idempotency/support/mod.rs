//! An application with payments, on any store.

pub(crate) mod answer;
pub(crate) mod application;
pub(crate) mod ledger;

pub(crate) use self::answer::{Answer, request, send};
pub(crate) use self::application::{Application, Order};
pub(crate) use self::ledger::Ledger;

/// Runs each of these tests on the stores; a test is an `async fn` that takes an [`Application`].
macro_rules! on_each_store {
    ($($test:ident),* $(,)?) => {
        crate::support::on_stores!(memory: saga_core::memory::MemoryStore => $($test),*);
        crate::support::on_stores!(sqlite: saga_sqlite::SqliteStore => $($test),*);
        crate::support::on_stores!(postgres: saga_postgres::PostgresStore => $($test),*);
    };
}

/// Runs each of these tests on one store.
macro_rules! on_stores {
    ($module:ident: $store:ty => $($test:ident),*) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(crate::support::Application::<$store>::start().await).await;
                }
            )*
        }
    };
}

pub(crate) use {on_each_store, on_stores};
