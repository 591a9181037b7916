//! The locks that a step transaction takes for its claims: one statement for all of them, before the claims are granted.

use saga_core::store::{
    Changes, Claim, Entity, LockRequest, LocksOfClaims, StoreError, TakenLock, locks_to_try, share_token,
};
use sqlx::{PgConnection, Row as _};

use crate::clock::micros;
use crate::error::store_error;
use crate::rows::arrays::column;
use crate::rows::rows::signed;
use crate::step_transaction::aborted::OPERATION;
use crate::store::lock_wait::millis;
use crate::store::store::PostgresStore;

/// What a transaction has of the locks of its claims; nothing of claims without locks.
#[derive(Debug, Default)]
pub(crate) struct TakenLocks(LocksOfClaims);

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

/// Takes the locks whose entities no other request has or waits for. Entities of open transactions are waited for as long as rows.
/// Without locks it sends nothing.
pub(crate) async fn take_locks(
    store: &PostgresStore,
    conn: &mut PgConnection,
    claims: &[Claim],
) -> Result<TakenLocks, StoreError> {
    let tried = locks_to_try(claims);
    let mut all: LocksOfClaims =
        tried.iter().map(|(index, _)| (*index, vec![None; claims[*index].locks.len()])).collect();
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
    // What this transaction starts has no request that is stored.
    let stored_saga = |of: usize, request: &LockRequest| claims[tried[of].0].start.is_none().then_some(request.saga.0);
    let rows = sqlx::query(store.sql("SELECT * FROM {schema}.acquire_locks($1, $2, $3, $4, $5, $6, $7, $8)"))
        .bind(column(&requests, |(of, _, request)| stored_saga(*of, request)))
        .bind(column(&requests, |(.., request)| &*request.name))
        .bind(lasts.collect::<Vec<i32>>())
        .bind(column(&entities, |(number, ..)| *number))
        .bind(column(&entities, |(_, tenant, _)| *tenant))
        .bind(column(&entities, |(.., entity)| entity.kind()))
        .bind(column(&entities, |(.., entity)| entity.id()))
        .bind(millis(store.shared().options.batch_lock_timeout))
        .persistent(store.prepares_statements())
        .fetch_all(conn)
        .await
        .map_err(|error| store_error(OPERATION, error))?;
    for row in rows {
        let read = || {
            let tokens: Vec<i64> = row.try_get(1)?;
            let tokens = tokens.into_iter().map(i64::cast_unsigned).collect();
            let taken = TakenLock { tokens, is_stored: row.try_get(2)?, has_waited: row.try_get(3)? };
            Ok::<(i32, _), sqlx::Error>((row.try_get(0)?, taken))
        };
        let (number, taken) = read().map_err(|error| store_error(OPERATION, error))?;
        let request = usize::try_from(number - 1).ok().and_then(|number| requests.get(number));
        if let Some((of, place, _)) = request {
            all[*of].1[*place] = Some(taken);
        }
    }
    share_token(&mut all);
    Ok(TakenLocks(all))
}

const KEEP: &str = "WITH new AS (\
         SELECT r.*, nextval('{schema}.lock_numbers') AS number, clock_timestamp() AS at \
         FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[]) \
             WITH ORDINALITY AS r(tenant, owner, saga, key, name, work, span, place)\
     ), kept AS (\
         INSERT INTO {schema}.lock_requests \
             (number, tenant, owner, saga, key, name, work, state, asked_at, waits_until, granted_at) \
         SELECT n.number, n.tenant, n.owner, n.saga, n.key, n.name, n.work, 'granted', n.at, \
             n.at + n.span * interval '1 microsecond', n.at FROM new n\
     ) \
     INSERT INTO {schema}.locked_entities (tenant, kind, id, number, owner, token) \
     SELECT n.tenant, e.kind, e.id, n.number, n.owner, e.token \
     FROM unnest($8::int[], $9::text[], $10::text[], $11::bigint[]) AS e(place, kind, id, token) \
     JOIN new n ON n.place = e.place";

/// Keeps locks that the transaction took, by one statement for all changes. Without such locks it sends nothing.
pub(crate) async fn keep_locks(
    store: &PostgresStore,
    conn: &mut PgConnection,
    changes: &[Changes],
) -> Result<(), StoreError> {
    let kept: Vec<(&LockRequest, &[u64])> =
        changes.iter().flat_map(|change| &change.locked).map(|lock| (&lock.wanted.request, &*lock.tokens)).collect();
    if kept.is_empty() {
        return Ok(());
    }
    let entities: Vec<(i32, &Entity, u64)> = (1..)
        .zip(&kept)
        .flat_map(|(place, (of, tokens))| {
            of.entities.iter().zip(*tokens).map(move |(entity, token)| (place, entity, *token))
        })
        .collect();
    sqlx::query(store.sql(KEEP))
        .bind(column(&kept, |(of, _)| of.tenant.as_str()))
        .bind(column(&kept, |(of, _)| of.owner.as_str()))
        .bind(column(&kept, |(of, _)| of.saga.0))
        .bind(column(&kept, |(of, _)| of.key.as_str()))
        .bind(column(&kept, |(of, _)| &*of.name))
        .bind(column(&kept, |(of, _)| of.work.id.0))
        .bind(column(&kept, |(of, _)| micros(of.within)))
        .bind(column(&entities, |(place, ..)| *place))
        .bind(column(&entities, |(_, entity, _)| entity.kind()))
        .bind(column(&entities, |(_, entity, _)| entity.id()))
        .bind(column(&entities, |(.., token)| signed(*token)))
        .persistent(store.prepares_statements())
        .execute(conn)
        .await
        .map(drop)
        .map_err(|error| store_error(OPERATION, error))
}
