//! Damages of G3, as it is for what comes in.

#![expect(clippy::unnecessary_wraps, reason = "every damage has one signature, for the table")]

use saga_testkit::checker::{Ledger, Receipt, What};
use saga_testkit::sim::Random;

use super::tools::insert;

/// A client sent this signal, and was told that it counts.
fn send(ledger: &mut Ledger, id: u64) {
    let call = 1_000_000 + id;
    insert(ledger, 0, What::SignalAnswered { call, receipt: Receipt::Counts });
    insert(ledger, 0, What::SignalCalled { call, saga: 0, id });
}

pub(super) fn acknowledged_and_lost(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    send(ledger, 1);
    // Its time was over, or another one came.
    ledger.finals[0].signal = Some(if random.per_mille(500) { 0 } else { 2 });
    Some(())
}

pub(super) fn two_count(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    send(ledger, 1);
    send(ledger, 2);
    Some(())
}

pub(super) fn out_of_nothing(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.finals[0].signal = Some(7);
    Some(())
}
