//! The example runs, and prints what it says.

use std::process::Command;

#[test]
fn orders_move_to_the_version_that_is_deployed() {
    let ran = Command::new(env!("CARGO_BIN_EXE_order-versions")).output().unwrap_or_else(|error| panic!("{error}"));
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    for said in [
        "refused: the runtime cannot start: create-order version 1 has changed: since sagas of it were started, \
         `weigh-order` was added behind `take-stock`; give the changed steps `.version(2)`",
        "3 commands of create-order version 1 wait, which is not registered here\n",
        "2 moved, 0 busy, 0 refused\n",
        "order-2 is completed on version 2: reserve-stock done, weigh-order skipped, charge-card done, book-carrier done, \
         confirm-order done\n  moved from create-order version 1 to create-order version 2: its carrier is booked by hand \
         otherwise\n",
        "order-4 is completed on version 1: take-stock done, charge-card done, confirm-order done\n",
        "3 pieces are left\n",
    ] {
        assert!(out.contains(said), "no {said:?} in\n{out}{err}");
    }
}
