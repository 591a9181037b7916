//! The example runs, and prints what it says.

use std::process::Command;

#[test]
fn five_orders_end_as_they_must() {
    let ran = Command::new(env!("CARGO_BIN_EXE_credit-check")).output().unwrap_or_else(|error| panic!("{error}"));
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    for said in [
        "goes-through: completed\n",
        "  reserve-stock  done       after the start\n  check-credit   done       after the start\n",
        "  pack-piece     done       2 of 2 done, 0 undone\n  is-dear        done       no\n",
        "  is-dear        done       no\n  insure-parcel  passed by  after is-dear\n  delivery       done       the saga goes-through>delivery\n  confirm-order  done       after delivery\n",
        "dear: completed\n",
        "  is-dear        done       yes\n  insure-parcel  done       after is-dear\n",
        "no-credit: compensated, because `check-credit` failed: no credit for bob\n",
        "no-stock: compensated, because `reserve-stock` failed: out of stock\n",
        "2 of 5 pieces are left, and 1 of 4 boxes\n",
    ] {
        assert!(out.contains(said), "no {said:?} in\n{out}{err}");
    }
    let phases = |key: &str| {
        let lines = out.split("\n\n").find(|order| order.starts_with(key)).unwrap_or_default().lines().skip(1);
        lines.filter_map(|line| line.split_whitespace().nth(1)).collect::<Vec<_>>()
    };
    // Which of three pieces finds no box is nobody's promise.
    let no_boxes = |piece| {
        format!("no-boxes: compensated, because `pack-piece#{piece}` failed: no box is left for piece {piece}\n")
    };
    assert!((1..=3).any(|piece| out.contains(&no_boxes(piece))), "{out}");
    assert!(out.contains("0 of 3 done, 2 undone\n"), "{out}");
    // Nor is which branch comes first: the other is undone, or never began.
    assert!(["undone", "cancelled"].contains(&phases("no-credit")[0]), "{out}");
    assert!(["undone", "cancelled"].contains(&phases("no-stock")[1]), "{out}");
}
