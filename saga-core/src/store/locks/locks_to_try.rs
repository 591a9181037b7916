//! Which locks a step transaction tries to take.

use std::collections::BTreeMap;

use crate::key::Tenant;
use crate::store::{Claim, Entity, LockRequest};

/// The claims with locks, with those of their locks that name no entity of an earlier claim: each lock by its place in its claim. A
/// store tries no others. The steps of one claim run one after the other, so they may name the same entity.
pub fn locks_to_try(claims: &[Claim]) -> Vec<(usize, Vec<(usize, &LockRequest)>)> {
    // An entity belongs to the first claim that wants it, whether that gets it or not.
    let mut first: BTreeMap<(&Tenant, &Entity), usize> = BTreeMap::new();
    let mut tried = Vec::new();
    for (index, claim) in claims.iter().enumerate().filter(|(_, claim)| !claim.locks.is_empty()) {
        let requests = claim.locks.iter().map(|wanted| &wanted.request).enumerate();
        let mut own = Vec::new();
        for (place, request) in requests {
            let mut is_first = |entity| *first.entry((&request.tenant, entity)).or_insert(index) == index;
            if request.entities.iter().all(&mut is_first) {
                own.push((place, request));
            }
        }
        tried.push((index, own));
    }
    tried
}
