//! Grants claims: one statement locks the rows of a batch and starts the sagas that begin with it.

use std::collections::HashMap;
use std::time::Duration;

use saga_core::store::{Advance, Changes, Claim, NewSaga, SagaId, Status, StoreError, WorkKind};
use sqlx::{PgConnection, Row as _};

use crate::error::store_error;
use crate::rows::arrays::{column, placeholders};
use crate::rows::rows::signed;
use crate::step_transaction::aborted::OPERATION;
use crate::step_transaction::taken_locks::TakenLocks;
use crate::store::lock_wait::{LockWait, millis};
use crate::store::store::PostgresStore;

/// The number of arguments of `grant_claims_of_tenants`.
const ARGUMENTS: usize = 14;

/// The grants of a step transaction.
#[derive(Debug)]
pub(crate) struct Granted {
    /// The id of its transaction.
    pub(crate) xact: String,
    /// Which of the claims were granted.
    pub(crate) claims: Vec<bool>,
    /// The sagas that it started, still without their progress.
    pub(crate) started: Vec<SagaId>,
}

/// Locks the rows of the claims, and starts the sagas of claims without a row. The handler of a lone claim may wait for
/// locks up to its time limit, but the key of its saga is waited for only shortly: the lock timeout of the begin holds
/// for the function, and is changed after it. A claim without the locks that it requires is not granted.
pub(crate) async fn grant(
    store: &PostgresStore,
    conn: &mut PgConnection,
    claims: &[Claim],
    locks: &TakenLocks,
    limit: Duration,
) -> Result<Granted, StoreError> {
    // In lock order, so that two batches never wait for each other in a circle.
    let may_run = |index: &usize| locks.has_required(claims, *index);
    let mut rows: Vec<usize> =
        (0..claims.len()).filter(|index| claims[*index].start.is_none() && may_run(index)).collect();
    rows.sort_unstable_by_key(|index| claims[*index].work.id);
    let mut starts: Vec<&NewSaga> =
        (0..claims.len()).filter(may_run).filter_map(|index| claims[index].start.as_deref()).collect();
    if rows.is_empty() && starts.is_empty() {
        return Ok(Granted { xact: String::new(), claims: vec![false; claims.len()], started: Vec::new() });
    }
    starts.sort_by_key(|saga| (&saga.tenant, &saga.key));
    let wanted = starts.iter().map(|saga| saga.definition.clone());
    let numbers = store.number_definitions(conn, OPERATION, wanted, LockWait::AsInTransaction, false).await?;
    let numbers = starts.iter().map(|saga| numbers.of(OPERATION, &saga.definition)).collect::<Result<Vec<_>, _>>()?;

    let is_lone_start = claims.len() == 1 && !starts.is_empty();
    let after_grant = if is_lone_start { ", set_config('lock_timeout', $15, true)" } else { "" };
    let sql = format!("SELECT g.*{after_grant} FROM {{schema}}.grant_claims_of_tenants({}) g", placeholders(ARGUMENTS));
    let query = sqlx::query(store.sql(&sql))
        .bind(column(&rows, |index| claims[*index].work.id.0))
        .bind(column(&rows, |index| signed(claims[*index].work.epoch)))
        .bind(column(&rows, |index| claims[*index].saga.0))
        .bind(tenants(claims, &rows))
        .bind(column(&rows, |index| claims[*index].key.as_str()))
        .bind(column(&rows, |index| claims[*index].step.as_str()))
        .bind(column(&rows, |index| status_for(claims[*index].kind).as_str()))
        .bind(column(&starts, |saga| saga.id.0))
        .bind(column(&starts, |saga| saga.tenant.as_str()))
        .bind(column(&starts, |saga| saga.key.as_str()))
        .bind(numbers)
        .bind(column(&starts, |saga| &saga.digest[..]))
        .bind(column(&starts, |saga| &*saga.input))
        .bind(column(&starts, |saga| &*saga.input_hash));
    let query = if is_lone_start { query.bind(millis(limit).to_string()) } else { query };
    let row = query
        .persistent(store.prepares_statements())
        .fetch_one(conn)
        .await
        .map_err(|error| store_error(OPERATION, error))?;
    let read = || Ok::<_, sqlx::Error>((row.try_get(0)?, row.try_get::<Vec<i32>, _>(1)?, row.try_get(2)?));
    let (xact, positions, started): (_, _, Vec<i64>) = read().map_err(|error| store_error(OPERATION, error))?;

    let started: Vec<SagaId> = started.into_iter().map(SagaId).collect();
    let is_fresh = |claim: &Claim| claim.start.as_ref().is_some_and(|saga| started.contains(&saga.id));
    let mut granted: Vec<bool> = claims.iter().map(is_fresh).collect();
    for position in positions {
        if let Some(index) = usize::try_from(position - 1).ok().and_then(|position| rows.get(position)) {
            granted[*index] = true;
        }
    }
    Ok(Granted { xact, claims: granted, started })
}

/// Writes the progress of sagas that were started and did not move.
pub(crate) fn keep_unmoved_sagas(claims: &[Claim], started: &[SagaId], changes: &mut Vec<Changes>) {
    let mut unmoved: HashMap<SagaId, &NewSaga> = claims
        .iter()
        .filter_map(|claim| claim.start.as_deref())
        .filter(|saga| started.contains(&saga.id))
        .map(|saga| (saga.id, saga))
        .collect();
    for advance in changes.iter().filter_map(|change| change.saga.as_ref()) {
        unmoved.remove(&advance.id);
    }
    changes.extend(unmoved.into_values().map(|saga| Changes {
        saga: Some(Advance {
            id: saga.id,
            expected: 0,
            status: saga.status,
            state: saga.state.clone(),
            expiry: saga.expiry.clone(),
        }),
        ..Changes::default()
    }));
}

/// The tenant of each row, or of all of them in one element, which is nearly always enough.
fn tenants<'a>(claims: &'a [Claim], rows: &[usize]) -> Option<Vec<&'a str>> {
    let tenant = |index: &usize| claims[*index].tenant.as_str();
    let is_one = rows.windows(2).all(|pair| tenant(&pair[0]) == tenant(&pair[1]));
    column(if is_one { &rows[..rows.len().min(1)] } else { rows }, tenant)
}

fn status_for(kind: WorkKind) -> Status {
    match kind {
        WorkKind::Do | WorkKind::Deadline => Status::Running,
        WorkKind::Undo => Status::Compensating,
    }
}
