//! The locks that a step transaction takes for its claims. No other transaction writes meanwhile, so an entity that no row names is
//! free.

use rusqlite::{Connection, OptionalExtension as _};
use saga_core::store::{Claim, KeptLock, LockRequest, LocksOfClaims, TakenLock, Timestamp, locks_to_try, share_token};

use crate::statements::lock_table::{entities_of, insert, number_of};
use crate::statements::rows::{self, signed};

/// What a transaction has of the locks of its claims.
#[derive(Debug, Default)]
pub(crate) struct TakenLocks {
    /// Nothing of claims without locks.
    of_claims: LocksOfClaims,
    /// The last token that was given.
    last: Option<u64>,
}

impl TakenLocks {
    /// Takes the locks whose entities no other request has or waits for. It writes nothing: a savepoint in front of all writes may come later.
    pub(crate) fn take(conn: &Connection, claims: &[Claim]) -> rusqlite::Result<Self> {
        let mut all = Self::default();
        for (index, tried) in locks_to_try(claims) {
            let mut taken = vec![None; claims[index].locks.len()];
            for (place, request) in tried {
                taken[place] = all.take_one(conn, request)?;
            }
            all.of_claims.push((index, taken));
        }
        share_token(&mut all.of_claims);
        Ok(all)
    }

    /// Whether the transaction has all locks that the claim requires.
    pub(crate) fn has_required(&self, claim: &Claim, index: usize) -> bool {
        let Some((_, taken)) = self.of_claims.iter().find(|(of, _)| *of == index) else { return true };
        claim.locks.iter().zip(taken).all(|(wanted, taken)| taken.is_some() || !wanted.is_required)
    }

    /// Each claim with locks, and what the transaction has of them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (usize, Vec<Option<TakenLock>>)> {
        self.of_claims.drain(..)
    }

    /// Writes down which tokens were given.
    pub(crate) fn record(&self, conn: &Connection) -> rusqlite::Result<()> {
        if let Some(last) = self.last {
            conn.prepare_cached("UPDATE saga_lock_numbers SET last = max(last, ?1)")?.execute([signed(last)])?;
        }
        Ok(())
    }

    fn take_one(&mut self, conn: &Connection, request: &LockRequest) -> rusqlite::Result<Option<TakenLock>> {
        if let Some(number) = number_of(conn, request.saga.0, &request.name)? {
            let entities = entities_of(conn, number)?;
            let is_same = entities.iter().map(|(entity, _)| entity).eq(&request.entities);
            // A request that waits has no tokens.
            let tokens: Option<Vec<u64>> = entities.into_iter().map(|(_, token)| token).collect();
            return Ok(tokens.filter(|_| is_same).map(|tokens| TakenLock {
                tokens,
                is_stored: true,
                has_waited: false,
            }));
        }
        if !is_free(conn, request)? {
            return Ok(None);
        }
        let before = match self.last {
            Some(last) => last,
            None => last_number(conn)?,
        };
        self.last = Some(before + 1);
        Ok(Some(TakenLock { tokens: vec![before + 1; request.entities.len()], is_stored: false, has_waited: false }))
    }
}

/// Whether no request has an entity of this one or waits for it.
fn is_free(conn: &Connection, request: &LockRequest) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM saga_locked_entities WHERE tenant = ?1 AND kind = ?2 AND id = ?3 LIMIT 1";
    let mut is_named = conn.prepare_cached(sql)?;
    for entity in &request.entities {
        let arguments = (request.tenant.as_str(), entity.kind(), entity.id());
        if is_named.query_row(arguments, |_| Ok(())).optional()?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The last number that was given, to a request or as a token.
fn last_number(conn: &Connection) -> rusqlite::Result<u64> {
    conn.prepare_cached("SELECT last FROM saga_lock_numbers")?.query_row((), |row| rows::unsigned(row, 0))
}

/// Keeps a lock that the transaction took.
pub(crate) fn keep(conn: &Connection, lock: &KeptLock, now: Timestamp) -> rusqlite::Result<()> {
    insert(conn, &lock.wanted.request, Some(&lock.tokens), now).map(drop)
}
