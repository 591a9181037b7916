//! Which locks a step transaction tries to take, and the tokens of those that it took.

use std::collections::BTreeMap;

use crate::key::Tenant;
use crate::store::{Claim, Entity, LockRequest, TakenLock};

/// What a step transaction has of the locks of its claims, each claim with locks by its place.
pub type LocksOfClaims = Vec<(usize, Vec<Option<TakenLock>>)>;

/// The claims with locks, with those of their locks that a store tries to take: each lock by its place in its claim.
///
/// Locks of steps end with the transaction, and its functions run one after the other, so each is tried. A semantic lock may
/// outlast the transaction, so its entity belongs to the first claim that wants it, whether that gets it or not.
pub fn locks_to_try(claims: &[Claim]) -> Vec<(usize, Vec<(usize, &LockRequest)>)> {
    let mut first: BTreeMap<(&Tenant, &Entity), usize> = BTreeMap::new();
    let mut tried = Vec::new();
    for (index, claim) in claims.iter().enumerate().filter(|(_, claim)| !claim.locks.is_empty()) {
        let requests = claim.locks.iter().map(|wanted| &wanted.request).enumerate();
        let mut own = Vec::new();
        for (place, request) in requests {
            let mut is_first = |entity| *first.entry((&request.tenant, entity)).or_insert(index) == index;
            if request.is_of_step() || request.entities.iter().all(&mut is_first) {
                own.push((place, request));
            }
        }
        tried.push((index, own));
    }
    tried
}

/// Gives each lock that the transaction took the highest of their tokens.
///
/// It is higher than each token that was granted before, and lower than each one that comes later, since the transaction has the
/// entities until its end. A function that is rolled back may run again behind a later one about the same entity, so their order
/// must not matter.
pub fn share_token(taken: &mut LocksOfClaims) {
    let of_transaction = || taken.iter().flat_map(|(_, locks)| locks).flatten().filter(|taken| !taken.is_stored);
    let Some(highest) = of_transaction().flat_map(|taken| &taken.tokens).max().copied() else { return };
    let locks = taken.iter_mut().flat_map(|(_, locks)| locks).flatten();
    for taken in locks.filter(|taken| !taken.is_stored) {
        taken.tokens.fill(highest);
    }
}
