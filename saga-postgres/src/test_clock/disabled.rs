//! Without the feature `test-clock` the clock is the server's, and all of this is nothing.

use saga_core::store::StoreError;
use sqlx::PgConnection;

/// The server's clock.
#[derive(Debug, Clone)]
pub(crate) struct TestClock;

/// Nothing takes note of a call.
pub(crate) struct Held;

#[expect(clippy::unused_self, reason = "that of the feature has a clock")]
impl TestClock {
    pub(crate) const NONE: Self = Self;

    pub(crate) fn rewrite(&self, sql: String) -> String {
        sql
    }

    pub(crate) fn create(&self) -> &'static str {
        ""
    }

    pub(crate) fn name_of(&self, migration: &'static str) -> &'static str {
        migration
    }

    pub(crate) fn hold(&self) -> Held {
        Held
    }

    #[expect(clippy::unused_async, reason = "that of the feature asks the server")]
    pub(crate) async fn show(
        &self,
        _operation: &'static str,
        _schema: &str,
        _conn: &mut PgConnection,
    ) -> Result<(), StoreError> {
        Ok(())
    }
}
