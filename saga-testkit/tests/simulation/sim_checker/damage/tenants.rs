//! Damages of G12: steps of two tenants come together.

use saga_testkit::checker::{Ledger, Op, What};
use saga_testkit::sim::Random;

use super::tools::{calls, entered, insert};

/// The first calls of the sagas of two tenants.
fn of_two_tenants(ledger: &Ledger) -> Option<[u64; 2]> {
    let first = |saga| calls(ledger, saga, 0, Op::Do).first().copied();
    Some([first(0)?, first(1)?])
}

/// A call of one tenant runs in the transaction of a call of another one.
pub(super) fn share_a_transaction(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    for call in of_two_tenants(ledger)? {
        let at = entered(ledger, call)?;
        let What::Entered { transaction, .. } = &mut ledger.entries[at].what else { return None };
        *transaction = Some(1);
    }
    Some(())
}

/// One call of a batch step has their inputs, where tenants share commits.
pub(super) fn share_a_call(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let calls = of_two_tenants(ledger)?;
    ledger.shares_tenants = true;
    let end = ledger.entries.len();
    insert(ledger, end, What::BatchCalled { calls: calls.to_vec() });
    Some(())
}
