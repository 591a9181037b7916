//! The clock of the feature `test-clock`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use saga_core::env::{Activity, ActivityGuard, Environment};
use saga_core::store::{StoreError, Timestamp};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use crate::error::store_error;

/// The clock of a schema: the microseconds since 1970, and the function that reads them.
const CREATE: &str = "CREATE SEQUENCE {schema}.test_clock; \
     CREATE FUNCTION {schema}.test_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS \
     $$ SELECT timestamptz 'epoch' + last_value * interval '1 microsecond' FROM {schema}.test_clock $$;";

/// How the journal names the first migration of a schema with a clock of its own. A store without that clock refuses the schema, and
/// one with it refuses every other schema.
const FIRST: (&str, &str) = ("tables", "tables with a test clock");

/// The server's clock, or that of a test.
#[derive(Clone)]
pub(crate) struct TestClock(Option<Arc<Shown>>);

struct Shown {
    environment: Arc<dyn Environment>,
    /// The time that the schema's clock shows.
    micros: AtomicI64,
}

/// Holds the clock of a test while a call is under way.
pub(crate) struct Held {
    _guard: Option<Box<dyn ActivityGuard>>,
}

impl TestClock {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn of(environment: Arc<dyn Environment>) -> Self {
        Self(Some(Arc::new(Shown { environment, micros: AtomicI64::new(0) })))
    }

    /// A statement that reads the schema's clock where it would read the server's.
    pub(crate) fn rewrite(&self, sql: String) -> String {
        if self.0.is_some() { sql.replace("clock_timestamp()", "{schema}.test_time()") } else { sql }
    }

    /// What makes the clock, in front of the first migration.
    pub(crate) fn create(&self) -> &'static str {
        if self.0.is_some() { CREATE } else { "" }
    }

    /// How the journal names a migration.
    pub(crate) fn name_of(&self, migration: &'static str) -> &'static str {
        if self.0.is_some() && migration == FIRST.0 { FIRST.1 } else { migration }
    }

    /// The clock of the test stands still until this is dropped.
    pub(crate) fn hold(&self) -> Held {
        Held { _guard: self.0.as_ref().and_then(|shown| shown.environment.enter(Activity::Store)) }
    }

    /// Sets the schema's clock to the time of the test.
    pub(crate) async fn show(
        &self,
        operation: &'static str,
        schema: &str,
        conn: &mut PgConnection,
    ) -> Result<(), StoreError> {
        let Some(shown) = &self.0 else { return Ok(()) };
        let Timestamp(now) = Timestamp::of_environment(shown.environment.now());
        if shown.micros.load(Ordering::Acquire) == now {
            return Ok(());
        }
        let set = format!("SELECT setval('{schema}.test_clock', {now})");
        conn.execute(sqlx::raw_sql(AssertSqlSafe(set))).await.map_err(|error| store_error(operation, error))?;
        shown.micros.store(now, Ordering::Release);
        Ok(())
    }
}

impl fmt::Debug for TestClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "a test's" } else { "the server's" })
    }
}
