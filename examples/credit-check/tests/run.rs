//! The example runs, and prints what it says.

use std::process::Command;

#[test]
fn three_orders_end_as_they_must() {
    let ran = Command::new(env!("CARGO_BIN_EXE_credit-check")).output().unwrap_or_else(|error| panic!("{error}"));
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    for said in [
        "goes-through: completed\n",
        "  reserve-stock  done       after the start\n  check-credit   done       after the start\n",
        "  confirm-order  done       after reserve-stock and check-credit\n",
        "no-credit: compensated, because `check-credit` failed: no credit for bob\n",
        "no-stock: compensated, because `reserve-stock` failed: out of stock\n",
        "3 of 5 pieces are left\n",
    ] {
        assert!(out.contains(said), "no {said:?} in\n{out}{err}");
    }
    let phases = |key: &str| {
        let lines = out.split("\n\n").find(|order| order.starts_with(key)).unwrap_or_default().lines().skip(1);
        lines.filter_map(|line| line.split_whitespace().nth(1)).collect::<Vec<_>>()
    };
    // Which branch comes first is nobody's promise: the other is undone, or never began.
    assert!(["undone", "cancelled"].contains(&phases("no-credit")[0]), "{out}");
    assert!(["undone", "cancelled"].contains(&phases("no-stock")[1]), "{out}");
}
