//! The locks that a step transaction takes for its claims: one statement for all of them, before the claims are granted.

use saga_core::store::{Claim, Entity, LockRequest, StoreError, TakenLock, locks_to_try};
use sqlx::{PgConnection, Row as _};

use crate::aborted::OPERATION;
use crate::arrays::column;
use crate::error::store_error;
use crate::store::PostgresStore;

/// What a transaction has of the locks of its claims; nothing of claims without locks.
#[derive(Debug, Default)]
pub(crate) struct TakenLocks(Vec<(usize, Vec<Option<TakenLock>>)>);

impl TakenLocks {
    /// Whether the transaction has all locks that the claim requires.
    pub(crate) fn has_required(&self, claims: &[Claim], index: usize) -> bool {
        let Some((_, taken)) = self.0.iter().find(|(of, _)| *of == index) else { return true };
        claims[index].locks.iter().zip(taken).all(|(wanted, taken)| taken.is_some() || !wanted.is_required)
    }
}

impl IntoIterator for TakenLocks {
    type Item = (usize, Vec<Option<TakenLock>>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Takes the locks whose entities no other request has or waits for. Without locks it sends nothing.
pub(crate) async fn take_locks(
    store: &PostgresStore,
    conn: &mut PgConnection,
    claims: &[Claim],
) -> Result<TakenLocks, StoreError> {
    let tried = locks_to_try(claims);
    let mut all: Vec<_> = tried.iter().map(|(index, _)| (*index, vec![None; claims[*index].locks.len()])).collect();
    let requests: Vec<(usize, usize, &LockRequest)> = (0..)
        .zip(&tried)
        .flat_map(|(of, (_, own))| own.iter().map(move |(place, request)| (of, *place, *request)))
        .collect();
    if requests.is_empty() {
        return Ok(TakenLocks(all));
    }
    let entities: Vec<(i32, &str, &Entity)> = (1..)
        .zip(&requests)
        .flat_map(|(number, (.., of))| of.entities.iter().map(move |entity| (number, of.tenant.as_str(), entity)))
        .collect();
    let lasts = requests.iter().scan(0_i32, |last, (.., request)| {
        *last = last.saturating_add(i32::try_from(request.entities.len()).unwrap_or(i32::MAX));
        Some(*last)
    });
    let rows =
        sqlx::query(store.sql("SELECT place, tokens, stored FROM {schema}.take_locks($1, $2, $3, $4, $5, $6, $7)"))
            .bind(column(&requests, |(.., request)| request.saga.0))
            .bind(column(&requests, |(.., request)| &*request.name))
            .bind(lasts.collect::<Vec<i32>>())
            .bind(column(&entities, |(number, ..)| *number))
            .bind(column(&entities, |(_, tenant, _)| *tenant))
            .bind(column(&entities, |(.., entity)| entity.kind()))
            .bind(column(&entities, |(.., entity)| entity.id()))
            .persistent(store.prepares_statements())
            .fetch_all(conn)
            .await
            .map_err(|error| store_error(OPERATION, error))?;
    for row in rows {
        let read =
            || Ok::<_, sqlx::Error>((row.try_get::<i32, _>(0)?, row.try_get::<Vec<i64>, _>(1)?, row.try_get(2)?));
        let (number, tokens, is_stored) = read().map_err(|error| store_error(OPERATION, error))?;
        let request = usize::try_from(number - 1).ok().and_then(|number| requests.get(number));
        if let Some((of, place, _)) = request {
            let tokens = tokens.into_iter().map(i64::cast_unsigned).collect();
            all[*of].1[*place] = Some(TakenLock { tokens, is_stored });
        }
    }
    Ok(TakenLocks(all))
}
