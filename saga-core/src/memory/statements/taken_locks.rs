//! The locks that a step transaction takes for its claims. They are held as its other locks are, and no row says so.

use crate::memory::tables::data::Data;
use crate::memory::tables::locks::{Lock, TxId};
use crate::store::{Claim, Entity, LockRequest, LocksOfClaims, TakenLock, locks_to_try, share_token};

/// Takes what no other request has or waits for.
pub(in crate::memory) fn take_locks(data: &mut Data, claims: &[Claim], me: TxId) -> LocksOfClaims {
    let mut all = LocksOfClaims::new();
    for (index, tried) in locks_to_try(claims) {
        let mut taken = vec![None; claims[index].locks.len()];
        for (place, request) in tried {
            taken[place] = take(data, request, me);
        }
        all.push((index, taken));
    }
    share_token(&mut all);
    all
}

/// Whether the transaction has all locks that the claim requires.
pub(in crate::memory) fn has_required(claim: &Claim, index: usize, all: &LocksOfClaims) -> bool {
    let Some((_, taken)) = all.iter().find(|(of, _)| *of == index) else { return true };
    claim.locks.iter().zip(taken).all(|(wanted, taken)| taken.is_some() || !wanted.is_required)
}

/// Whether an open transaction has an entity of the request.
pub(in crate::memory) fn is_held(data: &Data, request: &LockRequest) -> bool {
    request.entities.iter().any(|entity| data.locks.holder(&lock_of(request, entity), None).is_some())
}

fn take(data: &mut Data, request: &LockRequest, me: TxId) -> Option<TakenLock> {
    if data.semantic_locks.is_asked_for(request) {
        let tokens = data.semantic_locks.granted_before(request)?;
        return Some(TakenLock { tokens, is_stored: true, has_waited: false });
    }
    let is_free = |entity: &Entity| data.locks.holder(&lock_of(request, entity), Some(me)).is_none();
    if !data.semantic_locks.is_free(request) || !request.entities.iter().all(is_free) {
        return None;
    }
    for entity in &request.entities {
        data.locks.take(lock_of(request, entity), me);
    }
    let tokens = request.entities.iter().map(|_| data.semantic_locks.next()).collect();
    Some(TakenLock { tokens, is_stored: false, has_waited: false })
}

fn lock_of(request: &LockRequest, entity: &Entity) -> Lock {
    Lock::Entity(request.tenant.clone(), entity.clone())
}
