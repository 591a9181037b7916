//! Checks whether the store can work on a server.

use saga_core::store::{Durability, StoreError, StoreErrorKind};
use sqlx::{Executor as _, PgConnection, Row as _};

use crate::error::open_error;
use crate::options::PostgresOptions;
use crate::schema::schema::{self, Failure};

/// The oldest server version with the functions that this store uses.
const SERVER_VERSION_MIN: i32 = 140_000;

/// The properties of a server.
pub(crate) struct Server {
    pub(crate) durability: Durability,
    pub(crate) checks_clients: bool,
}

/// Checks the server, and brings the schema to this version; a read-only store requires that version.
pub(crate) async fn prepare(conn: &mut PgConnection, options: &PostgresOptions) -> Result<Server, StoreError> {
    let failed = |error| open_error(&options.connect, error);
    let settings = "SELECT current_setting('server_version_num')::integer, current_setting('fsync'), \
         current_setting('synchronous_commit'), pg_is_in_recovery()";
    let row = conn.fetch_one(sqlx::raw_sql(settings)).await.map_err(failed)?;
    let read = || Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?));
    let (version, fsync, synchronous, is_standby): (i32, String, String, bool) = read().map_err(failed)?;
    if version < SERVER_VERSION_MIN {
        let detail = format!(
            "the server is PostgreSQL {}; version {} or a later one is needed",
            version / 10_000,
            SERVER_VERSION_MIN / 10_000
        );
        return Err(StoreError::new(StoreErrorKind::NotAStore, "open", detail));
    }
    if is_standby && !options.read_only {
        let detail = "the server is a standby, which cannot be written; name the primary \
             (with several hosts: target_session_attrs=read-write)";
        return Err(StoreError::new(StoreErrorKind::NotWritable, "open", detail));
    }
    let at_hand =
        if options.read_only { schema::require(conn, options).await } else { schema::migrate(conn, options).await };
    at_hand.map_err(|failure| match failure {
        Failure::Sql(error) => failed(error),
        Failure::Refused(error) => error,
    })?;
    let durability = match (&*fsync, &*synchronous) {
        ("on", "off") => Durability::Process("synchronous_commit=off".to_owned()),
        ("on", _) => Durability::Full,
        _ => Durability::Process("fsync=off".to_owned()),
    };
    // Not every operating system of a server supports it.
    let checks_clients = conn.execute("SET client_connection_check_interval = 1000").await.is_ok();
    Ok(Server { durability, checks_clients })
}
