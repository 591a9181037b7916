//! Requests for what was done before, which are refused.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use saga_postgres::sqlx::{self, PgPool};
use saga_reservations::{Action, Late, Operation, Reason, ReservationKey, Reserve};

use super::contender::Contender;
use super::work::at_once;

/// How many unique intents were confirmed before.
const INTENTS: u32 = 64;

/// Confirms the unique intents, and inserts the rows that are unique by an index.
pub(super) async fn prepare(contender: &Contender, pool: &PgPool) -> Result<()> {
    sqlx::query("CREATE TABLE sign_ups (id TEXT PRIMARY KEY)").execute(pool).await?;
    for intent in 0..INTENTS {
        let key = ReservationKey::new(format!("first-{intent}"))?;
        let reserve = Action::Reserve(Reserve::unique("sign-up", intent));
        let held = contender.perform(Operation::new(key.clone(), reserve)).await?;
        let confirm = Action::Confirm { token: held.token, late: Late::Refuse };
        contender.perform(Operation::new(key, confirm)).await?;
        sqlx::query("INSERT INTO sign_ups VALUES ($1)").bind(intent.to_string()).execute(pool).await?;
    }
    Ok(())
}

/// Each request is refused as a duplicate.
pub(super) async fn refused(contender: &Contender, prefix: &str, calls: u32, in_flight: u32) -> Result<Duration> {
    let (contender, prefix) = (contender.clone(), prefix.to_owned());
    at_once(calls, in_flight, move |number| {
        let (contender, key) = (contender.clone(), format!("{prefix}-{number}"));
        async move {
            let reserve = Action::Reserve(Reserve::unique("sign-up", number % INTENTS));
            match contender.perform(Operation::new(ReservationKey::new(key)?, reserve)).await {
                Err(error) if error.refusal().map(saga_reservations::Refusal::reason) == Some(Reason::Duplicate) => {
                    Ok(())
                }
                answer => bail!("a duplicate was answered with {answer:?}"),
            }
        }
    })
    .await
}

/// Each insert violates the unique index.
pub(super) async fn violated(pool: &PgPool, calls: u32, in_flight: u32) -> Result<Duration> {
    let pool = pool.clone();
    at_once(calls, in_flight, move |number| {
        let pool = pool.clone();
        async move {
            let insert = sqlx::query("INSERT INTO sign_ups VALUES ($1)").bind((number % INTENTS).to_string());
            let inserted = insert.execute(&pool).await;
            let database = inserted.as_ref().err().and_then(sqlx::Error::as_database_error);
            let is_duplicate = database.is_some_and(sqlx::error::DatabaseError::is_unique_violation);
            ensure!(is_duplicate, "a duplicate was answered with {inserted:?}");
            Ok(())
        }
    })
    .await
}
